// Package value has the scalar types of the API: how amounts, times and what may be missing are written in an
// answer, read from a request, and described in the document.
package value

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"agentproxy/adapters/httpapi/strictjson"
	"agentproxy/domain"
	"agentproxy/domain/session"
)

// The scalar types of replies. Each writes itself by appending, so that an
// answer is one buffer, and describes itself to the document.

// Money is an amount of US dollars: a JSON number with at most 6 decimals.
type Money domain.Money

// AppendJSON appends the value.
func (m Money) AppendJSON(b []byte) []byte { return domain.AppendDecimal(b, int64(m), 6) }

// MarshalJSON writes the exact decimal number.
func (m Money) MarshalJSON() ([]byte, error) { return m.AppendJSON(nil), nil }

// Schema describes the type in the document.
func (Money) Schema(huma.Registry) *huma.Schema { return &huma.Schema{Type: huma.TypeNumber} }

// Limit is an amount that may be none, which is null.
type Limit struct{ Of *domain.Money }

// AppendJSON appends the value.
func (l Limit) AppendJSON(b []byte) []byte {
	if l.Of == nil {
		return append(b, "null"...)
	}
	return Money(*l.Of).AppendJSON(b)
}

// MarshalJSON writes the number, or null.
func (l Limit) MarshalJSON() ([]byte, error) { return l.AppendJSON(nil), nil }

// Schema describes the type in the document.
func (Limit) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeNumber, Nullable: true}
}

// Gigabytes is a number of bytes shown in GB: a JSON number with at most 9
// decimals.
type Gigabytes int64

// AppendJSON appends the value.
func (g Gigabytes) AppendJSON(b []byte) []byte { return domain.AppendDecimal(b, int64(g), 9) }

// MarshalJSON writes the exact decimal number.
func (g Gigabytes) MarshalJSON() ([]byte, error) { return g.AppendJSON(nil), nil }

// Schema describes the type in the document.
func (Gigabytes) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeNumber}
}

// MaybeGB is a number of bytes that a static session does not have: a negative one
// is null.
type MaybeGB int64

// AppendJSON appends the value.
func (g MaybeGB) AppendJSON(b []byte) []byte {
	if g < 0 {
		return append(b, "null"...)
	}
	return Gigabytes(g).AppendJSON(b)
}

// MarshalJSON writes the number, or null.
func (g MaybeGB) MarshalJSON() ([]byte, error) { return g.AppendJSON(nil), nil }

// Schema describes the type in the document.
func (MaybeGB) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeNumber, Nullable: true}
}

// MaybeInt is an integer that may be missing: a negative one is null.
type MaybeInt int64

// AppendJSON appends the value.
func (i MaybeInt) AppendJSON(b []byte) []byte {
	if i < 0 {
		return append(b, "null"...)
	}
	return strconv.AppendInt(b, int64(i), 10)
}

// MarshalJSON writes the number, or null.
func (i MaybeInt) MarshalJSON() ([]byte, error) { return i.AppendJSON(nil), nil }

// Schema describes the type in the document.
func (MaybeInt) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeInteger, Format: "int64", Nullable: true}
}

// Stamp is a time: RFC 3339 in UTC with milliseconds.
type Stamp time.Time

// AppendJSON appends the value.
func (s Stamp) AppendJSON(b []byte) []byte {
	b = append(b, '"')
	b = appendStamp(b, time.Time(s))
	return append(b, '"')
}

// MarshalJSON writes the time.
func (s Stamp) MarshalJSON() ([]byte, error) { return s.AppendJSON(nil), nil }

// Schema describes the type in the document.
func (Stamp) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "date-time"}
}

// MaybeStamp is a time that may not have come: the zero time is null.
type MaybeStamp time.Time

// AppendJSON appends the value.
func (s MaybeStamp) AppendJSON(b []byte) []byte {
	if time.Time(s).IsZero() {
		return append(b, "null"...)
	}
	return Stamp(s).AppendJSON(b)
}

// MarshalJSON writes the time, or null.
func (s MaybeStamp) MarshalJSON() ([]byte, error) { return s.AppendJSON(nil), nil }

// Schema describes the type in the document.
func (MaybeStamp) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "date-time", Nullable: true}
}

// MaybeText is a string that may be none: empty is null.
type MaybeText string

// AppendJSON appends the value.
func (t MaybeText) AppendJSON(b []byte) []byte {
	if t == "" {
		return append(b, "null"...)
	}
	return strictjson.AppendString(b, string(t))
}

// MarshalJSON writes the string, or null.
func (t MaybeText) MarshalJSON() ([]byte, error) { return t.AppendJSON(nil), nil }

// Schema describes the type in the document.
func (MaybeText) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Nullable: true}
}

// Labels are an agent's own words for a session.
type Labels session.Labels

// AppendJSON appends the value, in the order of the keys.
func (l Labels) AppendJSON(b []byte) []byte {
	b = append(b, '{')
	for i, key := range slices.Sorted(maps.Keys(l)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(strictjson.AppendString(b, key), ':')
		b = strictjson.AppendString(b, l[key])
	}
	return append(b, '}')
}

// MarshalJSON writes the object.
func (l Labels) MarshalJSON() ([]byte, error) { return l.AppendJSON(nil), nil }

// Schema describes the type in the document.
func (Labels) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: &huma.Schema{Type: huma.TypeString,
		MaxLength: new(session.MaxLabelValue)}}
}

// Ratio is a number from 0 to 1 with at most 4 decimals.
type Ratio float64

// AppendJSON appends the value.
func (r Ratio) AppendJSON(b []byte) []byte { return appendRounded(b, float64(r), 1e4) }

// MarshalJSON writes the number.
func (r Ratio) MarshalJSON() ([]byte, error) { return r.AppendJSON(nil), nil }

// Schema describes the type in the document.
func (Ratio) Schema(huma.Registry) *huma.Schema {
	zero, one := 0.0, 1.0
	return &huma.Schema{Type: huma.TypeNumber, Minimum: &zero, Maximum: &one}
}

// Percent is a share in hundredths of a percent; a negative one is null.
type Percent int64

// AppendJSON appends the value.
func (p Percent) AppendJSON(b []byte) []byte {
	if p < 0 {
		return append(b, "null"...)
	}
	return domain.AppendDecimal(b, int64(p), 2)
}

// MarshalJSON writes the number, or null.
func (p Percent) MarshalJSON() ([]byte, error) { return p.AppendJSON(nil), nil }

// Schema describes the type in the document.
func (Percent) Schema(huma.Registry) *huma.Schema {
	zero, hundred := 0.0, 100.0
	return &huma.Schema{Type: huma.TypeNumber, Nullable: true, Minimum: &zero, Maximum: &hundred}
}

// Hundreds is a number of 0 and more with at most 2 decimals.
type Hundreds float64

// AppendJSON appends the value.
func (h Hundreds) AppendJSON(b []byte) []byte { return appendRounded(b, float64(h), 100) }

// MarshalJSON writes the number.
func (h Hundreds) MarshalJSON() ([]byte, error) { return h.AppendJSON(nil), nil }

// Schema describes the type in the document.
func (Hundreds) Schema(huma.Registry) *huma.Schema {
	zero := 0.0
	return &huma.Schema{Type: huma.TypeNumber, Minimum: &zero}
}

// appendRounded appends x rounded to 1/unit without trailing zeros.
func appendRounded(b []byte, x, unit float64) []byte {
	places := len(strconv.Itoa(int(unit))) - 1
	return domain.AppendDecimal(b, int64(x*unit+0.5), places)
}

// appendStamp appends a time as RFC 3339 in UTC with milliseconds. It takes a third
// of the time of Format.
func appendStamp(b []byte, t time.Time) []byte {
	t = t.UTC()
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	b = appendPadded(b, year, 1000)
	b = appendPadded(append(b, '-'), int(month), 10)
	b = appendPadded(append(b, '-'), day, 10)
	b = appendPadded(append(b, 'T'), hour, 10)
	b = appendPadded(append(b, ':'), minute, 10)
	b = appendPadded(append(b, ':'), second, 10)
	b = appendPadded(append(b, '.'), t.Nanosecond()/1e6, 100)
	return append(b, 'Z')
}

// appendPadded appends n with leading zeros; unit is the weight of the first digit.
func appendPadded(b []byte, n, unit int) []byte {
	for ; unit > 0; unit /= 10 {
		b = append(b, byte('0'+n/unit%10))
	}
	return b
}
