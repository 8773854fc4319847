package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentproxy/adapters/admin/signin"
	"agentproxy/adapters/console/ui"
	"agentproxy/app/exitlogs"
	"agentproxy/app/operator"
	"agentproxy/domain"
	"agentproxy/domain/audit"
	"agentproxy/domain/exitlog"
)

// action is a command of the operator as a form.
type action struct {
	Name        string // the command, as it is kept
	Title       string
	Description string // what it does; %s is the subject
	Button      string
	Done        string // what the next page shows of it
	Page        string // where its button is, unless it is on the page of its subject; empty: the overview
	Danger      bool
	Reads       bool // it changes nothing: it needs no reason and is not kept
	Fields      []field
	About       []string // the fields that name what it is about; empty: the subject of the form
	Once        bool     // it is done once for each form that was shown
	// Do runs the use case and returns where to go. Sections are shown at once instead, since they hold
	// what must not be in a URL.
	Do func(ctx context.Context, c *Console, in input) (to string, shown []section, err error)
}

// Commands returns the command of each button by the name of its form.
func Commands() map[string]string {
	names := map[string]string{}
	for form, a := range actions {
		names[form] = a.Name
	}
	return names
}

// input is what a form has.
type input struct {
	Subject, Reason, By, Ref string
	get                      func(name string) string
}

// Names of the fields that every form has.
const (
	subjectField, reasonField, keyField, sureField = "subject", "reason", "key", "sure"
)

// maxForm bounds the body of a form.
const maxForm = 64 << 10

// needed returns a required field.
func needed(name, label, hint string) field {
	return field{Name: name, Label: label, Hint: hint, Required: true}
}

// form returns the form of an action with what was entered before.
func (c *Console) form(name string, a action, in input) *form {
	f := &form{Action: "/do/" + name, Description: a.Description, Button: a.Button, Danger: a.Danger,
		Hidden: []field{{Name: subjectField, Value: in.Subject}, {Name: keyField, Value: cmp.Or(in.get(keyField),
			c.use.IDs.New(""))}}}
	f.Back = cmp.Or(subject(in.Subject).Href, a.Page, "/")
	if strings.Contains(a.Description, "%s") {
		f.Description = fmt.Sprintf(a.Description, cmp.Or(in.Subject, "everything"))
	}
	for _, x := range a.Fields {
		x.Value = cmp.Or(in.get(x.Name), x.Value)
		x.Options = slices.Clone(x.Options)
		for i := range x.Options {
			x.Options[i].Chosen = x.Options[i].Value == x.Value
		}
		f.Fields = append(f.Fields, x)
	}
	if f.Sure = !a.Reads; a.Reads {
		return f
	}
	f.Fields = append(f.Fields, field{Name: reasonField, Label: "Reason", Value: in.Reason, Required: true,
		Hint: "Why; it is kept."})
	return f
}

// acting refuses users who may read alone.
func (c *Console) acting(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !signin.Of(r.Context()).May(signin.Act) {
			c.render(w, r, http.StatusForbidden, page{Title: "You may read these pages", problem: &ui.Problem{Code: "ROLE_READ",
				Message: "Your user has the role read, which does nothing that a command does."}})
			return
		}
		next(w, r)
	}
}

// actionForm shows the form of an action.
func (c *Console) actionForm(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("action")
	a, ok := actions[name]
	if !ok {
		c.missing(w, r)
		return
	}
	q := r.URL.Query()
	in := input{Subject: q.Get(subjectField), get: func(f string) string {
		if slices.ContainsFunc(a.Fields, func(x field) bool { return x.Name == f }) {
			return q.Get(f)
		}
		return ""
	}}
	c.render(w, r, http.StatusOK, page{Title: a.Title, Form: c.form(name, a, in)})
}

var errUnsure = domain.InvalidField("sure", "must be ticked: nothing was done")

// act does an action, and shows its form again with the cause if it is refused.
func (c *Console) act(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("action")
	a, ok := actions[name]
	if !ok {
		c.missing(w, r)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		c.render(w, r, http.StatusBadRequest, page{Title: a.Title, Form: c.form(name, a,
			input{get: func(string) string { return "" }})})
		return
	}
	in := input{Subject: strings.TrimSpace(r.PostFormValue(subjectField)), Reason: r.PostFormValue(reasonField),
		By: signin.Of(r.Context()).Name, get: func(f string) string { return strings.TrimSpace(r.PostFormValue(f)) }}
	allowSlow(w)
	to, shown, err := c.run(r.Context(), a, in)
	p := page{Title: a.Title, Sections: shown}
	switch {
	case err != nil:
		status := 0
		p.problem, status = c.problemOf(err)
		p.Form = c.form(name, a, in)
		c.render(w, r, status, p)
	case shown != nil:
		p.notice = a.Done
		c.render(w, r, http.StatusOK, p)
	default:
		http.Redirect(w, r, to+"?done="+name, http.StatusSeeOther)
	}
}

// run does an action as who signed in, for the reason that the form has.
func (c *Console) run(ctx context.Context, a action, in input) (to string, shown []section, err error) {
	switch {
	case a.Reads:
		return a.Do(ctx, c, in)
	case in.get(sureField) != "yes":
		return "", nil, errUnsure
	case strings.TrimSpace(in.Reason) == "":
		return "", nil, domain.InvalidField(reasonField, "is needed: it is kept with the action")
	}
	done := audit.Action{By: in.By, Via: audit.Console, Name: a.Name, Subject: in.Subject, Reason: in.Reason}
	if a.Once {
		in.Ref = "console:" + in.get(keyField)
		done.Ref = in.Ref
	}
	if about := make([]string, len(a.About)); len(about) > 0 {
		for i, name := range a.About {
			about[i] = in.get(name)
		}
		done.Subject = strings.Join(slices.DeleteFunc(about, func(s string) bool { return s == "" }), " to ")
	}
	for _, f := range a.Fields {
		done.Details = strings.TrimSpace(done.Details + " " + f.Name + "=" + in.get(f.Name))
	}
	err = c.use.Trail.Do(ctx, done, func(ctx context.Context) error {
		to, shown, err = a.Do(ctx, c, in)
		return err
	})
	return to, shown, err
}

// number parses a whole number of a field.
func (in input) number(name string) (int, error) {
	n, err := strconv.Atoi(in.get(name))
	if err != nil {
		return 0, domain.InvalidField(name, "must be a whole number")
	}
	return n, nil
}

// day parses a day of a field.
func (in input) day(name string) (time.Time, error) {
	at, err := time.Parse(time.DateOnly, in.get(name))
	if err != nil {
		return at, domain.InvalidField(name, "must be a day such as 2026-11-01")
	}
	return at, nil
}

// secrets shows credentials, which are shown once.
func secrets(title string, values ...figure) []section {
	return []section{{Title: title, Note: "They are shown this once and cannot be read again.", Facts: values}}
}

func refund(ctx context.Context, c *Console, in input) (string, []section, error) {
	percent, err := in.number("percent")
	if err != nil {
		return "", nil, err
	}
	_, err = c.use.Sessions.Refund(ctx, operator.Refund{SessionID: in.Subject, Percent: percent, Reason: in.Reason,
		Ref: in.Ref})
	return in.session(), nil, err
}

func lookUp(ctx context.Context, c *Console, in input) (string, []section, error) {
	exit, err := in.addr("exit")
	if err != nil {
		return "", nil, err
	}
	client, err := in.addr("client")
	if err != nil {
		return "", nil, err
	}
	var port uint64
	if in.get("port") != "" {
		if port, err = strconv.ParseUint(in.get("port"), 10, 16); err != nil {
			return "", nil, domain.InvalidField("port", "must be 0 to 65535")
		}
	}
	at, err := time.Parse(time.RFC3339, in.get("at"))
	if err != nil {
		return "", nil, domain.InvalidField("at", "must be a time with a zone, such as 2026-05-15T12:00:00Z")
	}
	within, err := in.number("minutes")
	if err != nil {
		return "", nil, err
	}
	found, err := c.use.Exits.Lookup(ctx, exitlogs.LookupInput{
		Operator: in.By, Reason: in.Reason, Query: exitlog.Query{Exit: exit, Port: uint16(port), At: at.UTC(),
			Within: time.Duration(within) * time.Minute, Target: in.get("target"), Client: client, Agent: in.get("agent"),
			Seller: in.get("seller"), Token: in.get("token")}})
	if errors.Is(err, exitlogs.ErrNoneFound) {
		return "", []section{{Title: "No connection found", Note: exitlogs.ErrNoneFound.Message}}, nil
	}
	return "", []section{{Title: "Who used it", ID: "found", Table: foundTable(found)}}, err
}

// addr parses an address of a field; an empty one is invalid.
func (in input) addr(name string) (netip.Addr, error) {
	if in.get(name) == "" {
		return netip.Addr{}, nil
	}
	addr, err := netip.ParseAddr(in.get(name))
	if err != nil {
		return addr, domain.InvalidField(name, "must be an IP address")
	}
	return addr, nil
}

func hold(ctx context.Context, c *Console, in input) (string, []section, error) {
	from, err := in.day("from")
	if err != nil {
		return "", nil, err
	}
	to, err := in.day("to")
	if err != nil {
		return "", nil, err
	}
	_, err = c.use.Exits.Hold(ctx, from, to, in.By, in.Reason)
	return "/exits", nil, err
}

func jobOf(do func(*Console, context.Context, int64) error) func(context.Context, *Console, input) (string,
	[]section, error) {
	return func(ctx context.Context, c *Console, in input) (string, []section, error) {
		id, err := strconv.ParseInt(in.Subject, 10, 64)
		if err != nil {
			return "", nil, domain.InvalidField(subjectField, "must be the number of a job")
		}
		return "/jobs", nil, do(c, ctx, id)
	}
}

// agent and session are the pages of a subject.
func (in input) agent() string   { return "/agents/" + url.PathEscape(in.Subject) }
func (in input) session() string { return "/sessions/" + url.PathEscape(in.Subject) }
