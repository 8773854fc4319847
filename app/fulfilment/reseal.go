package fulfilment

import (
	"context"
	"errors"
	"fmt"

	"agentproxy/ports"
)

// resealAtOnce is how many deliveries one unit of work reseals.
const resealAtOnce = 200

// Reseal seals every delivery under the current root secret, so that previous ones
// are not needed to open it, and keeps when. It returns how many there are. One that
// cannot be opened stays as it is and does not stop the others.
func (f *Service) Reseal(ctx context.Context) (resealed int, err error) {
	var faults []error
	for after := int64(0); ctx.Err() == nil; {
		var list []ports.SealedDelivery
		err := f.store.View(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) (err error) {
			list, err = tx.Orders().Sealed(ctx, after, resealAtOnce)
			return err
		})
		if err != nil {
			return resealed, errors.Join(append(faults, err)...)
		}
		if len(list) == 0 {
			return resealed, f.keepResealed(ctx, errors.Join(faults...))
		}
		after = list[len(list)-1].Position
		n, err := f.resealSome(ctx, list)
		resealed += n
		faults = append(faults, err)
	}
	return resealed, errors.Join(append(faults, ctx.Err())...)
}

// keepResealed keeps when everything was resealed, unless something was not.
func (f *Service) keepResealed(ctx context.Context, faults error) error {
	if faults != nil {
		return faults
	}
	return f.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		return tx.Orders().KeepResealed(ctx)
	})
}

func (f *Service) resealSome(ctx context.Context, list []ports.SealedDelivery) (resealed int, err error) {
	var faults []error
	err = f.store.Update(ctx, ports.ReadSet{}, func(ctx context.Context, tx repos) error {
		resealed, faults = 0, nil
		for _, d := range list {
			if len(d.Sealed) == 0 { // nothing was delivered
				continue
			}
			plain, err := f.secrets.Open(d.Sealed, "order/"+d.OrderID)
			if err != nil {
				faults = append(faults, fmt.Errorf("open the delivery of %s: %w", d.OrderID, err))
				continue
			}
			done, err := tx.Orders().Reseal(ctx, d, f.secrets.Seal(plain, "order/"+d.OrderID))
			if err != nil {
				return err
			}
			if done { // else the service has sealed it anew meanwhile
				resealed++
			}
		}
		return nil
	})
	return resealed, errors.Join(append(faults, err)...)
}
