package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// tool is a row of the table of tools.
type tool struct {
	name, title, description string
	scope                    string // the permission that lists it and lets it be called
	args                     []field
	out                      []field // of structuredContent; nil: the answer is text alone

	reads      bool // changes nothing
	destroys   bool // what it changes cannot be had back
	repeatable bool // a second call with the same arguments changes nothing more
	open       bool // reaches beyond the service

	run runner
}

// runner runs a tool with arguments that were checked.
type runner func(ctx context.Context, a *api, args json.RawMessage) (reply, error)

// reply is what a tool answers.
type reply struct {
	data  any    // an object
	next  string // one sentence that names a tool
	image []byte // a PNG; nil: none
}

// maxAnswer bounds the text of an answer, in bytes.
const maxAnswer = 8000

// taking reads the arguments of a tool into its own type.
func taking[A any](run func(context.Context, *api, A) (reply, error)) runner {
	return func(ctx context.Context, a *api, raw json.RawMessage) (reply, error) {
		var args A
		if err := decode(raw, &args); err != nil {
			return reply{}, invalid("arguments", "must be a JSON object")
		}
		return run(ctx, a, args)
	}
}

// scopesOf returns the permissions of tools, without repeats.
func scopesOf(list []tool) []string {
	set := map[string]bool{}
	for _, t := range list {
		set[t.scope] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// declared returns the tool as tools/list shows it. Every hint is set: one that is left out means
// true to some clients.
func (t tool) declared() *sdk.Tool {
	d := &sdk.Tool{Name: t.name, Title: t.title, Description: t.description, InputSchema: schema(t.args),
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: t.reads, DestructiveHint: &t.destroys,
			IdempotentHint: t.repeatable, OpenWorldHint: &t.open}}
	if t.out != nil {
		s := schema(t.out)
		delete(s, "additionalProperties")
		d.OutputSchema = s
	}
	return d
}

// call runs the tool. What goes wrong is a result too, which a model can read. The SDK runs it in a
// goroutine of its own, where a panic would end the process.
func (t tool) call(ctx context.Context, log *slog.Logger, a *api, raw json.RawMessage) (result *sdk.CallToolResult) {
	defer func() {
		if fault := recover(); fault != nil {
			log.LogAttrs(ctx, slog.LevelError, "a tool panicked", slog.String("tool", t.name),
				slog.String("stack", string(debug.Stack())))
			result = refused(a, errors.New("a tool panicked"))
		}
	}()
	return t.answer(ctx, a, raw)
}

func (t tool) answer(ctx context.Context, a *api, raw json.RawMessage) *sdk.CallToolResult {
	args, err := check(raw, t.args)
	if err != nil {
		return refused(a, err)
	}
	text, err := json.Marshal(args) // without the arguments that are null
	if err != nil {
		return refused(a, err)
	}
	r, err := t.run(ctx, a, text)
	if err != nil {
		return refused(a, err)
	}
	answer, err := object(r.data, r.next)
	if err != nil || len(answer) > maxAnswer {
		return refused(a, &refusal{Code: "INTERNAL_ERROR", Message: "the answer cannot be shown"})
	}
	shown := string(answer)
	if !a.secrets.revealed() {
		shown = a.secrets.hide(shown)
	}
	result := &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: shown}}}
	if r.image != nil {
		result.Content = append(result.Content, &sdk.ImageContent{Data: r.image, MIMEType: "image/png"})
	}
	if t.out != nil {
		result.StructuredContent = json.RawMessage(shown)
	}
	return result
}

// object writes an object with next_step as its last field.
func object(data any, next string) ([]byte, error) {
	text, err := json.Marshal(data)
	if err != nil {
		return nil, err
	}
	step, err := json.Marshal(next)
	if err != nil {
		return nil, err
	}
	if len(text) > len("{}") {
		text[len(text)-1] = ','
	} else {
		text = text[:1]
	}
	return append(append(append(text, `"next_step":`...), step...), '}'), nil
}

// refused returns the answer of a refusal. Details that would make it too long are left out.
func refused(a *api, err error) *sdk.CallToolResult {
	r := refusalOf(err)
	text, err := json.Marshal(r)
	if err != nil || len(text) > maxAnswer {
		r.Details = nil
		if len(r.Message) > maxAnswer/2 {
			r.Message = "the service refused the call"
		}
		text, _ = json.Marshal(r) // strings and a boolean
	}
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: a.secrets.hide(string(text))}}}
}
