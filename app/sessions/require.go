package sessions

import (
	"context"
	"errors"

	"agentproxy/app/ordering"
	"agentproxy/domain/exit"
	"agentproxy/domain/session"
	"agentproxy/ports"
)

// chooseFor measures the exits that a purchase with a rule may get, and chooses that of a seller. What was bought
// before under its key is the answer, whatever the sources have now.
func chooseFor(
	ctx context.Context, u *Service, in Create, spec session.Spec, id string,
) (turn *ordering.Turn, done Done, err error) {
	if in.Require.Empty() {
		return nil, Done{}, nil
	}
	if in.Call.Key != "" && !in.DryRun {
		err := u.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx Repos) (err error) {
			done, _, err = u.replayed(ctx, tx, in.AgentID, in.Call, u.clock.Now())
			return err
		})
		if err == nil && done.Replayed {
			done.View.Direct, err = u.access.Direct(ctx, done.View.Session)
		}
		if err != nil || done.Replayed {
			return nil, done, err
		}
	}
	if err := in.Require.Check("require.", u.driver.Gate.Can()); err != nil {
		return nil, Done{}, err
	}
	p, err := u.plan(in, spec)
	if err != nil {
		return nil, Done{}, nil
	}
	s := session.Session{ID: id, AgentID: in.AgentID, Type: p.spec.Type, Status: session.Creating,
		ProductNo: p.product.No, Provider: p.sources[0].Provider, Quantity: p.spec.Quantity, Days: p.spec.Days,
		Bytes: p.spec.Bytes, Location: p.spec.Location, Require: in.Require}
	if err := ordering.MayLearn(u.driver, s); err != nil || in.DryRun {
		return nil, Done{}, err
	}
	// Nothing is measured for an account that could not pay.
	if _, err := u.quoteCreate(ctx, in, spec); err != nil {
		return nil, Done{}, err
	}
	turn, err = ordering.Learn(ctx, u.driver, s)
	return turn, Done{}, err
}

// choices is how often an exit is chosen for a rotation while another rotation takes it.
const choices = 4

// rotateLearned calls rotate, and again once the exits that its rule needs are measured or chosen.
func rotateLearned(
	rotate func(*ordering.Turn) (Done, error), learn func() (*ordering.Turn, error),
) (Done, error) {
	done, err := rotate(nil)
	for range choices {
		if !errors.Is(err, exit.ErrNotMet) {
			return done, err
		}
		turn, refused := learn()
		if refused != nil {
			return Done{}, refused
		}
		if done, err = rotate(turn); turn == nil {
			return done, err
		}
	}
	if errors.Is(err, exit.ErrNotMet) {
		err = ports.ErrTimeout
	}
	return done, err
}
