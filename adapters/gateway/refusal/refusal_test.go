package refusal

import (
	"testing"
)

// Every code has a text of its own; the texts are public API.
func TestCodesHaveTexts(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for c := range Codes {
		text := Code(c).String()
		if (c == 0) != (text == "") || seen[text] {
			t.Errorf("code %d has the text %q", c, text)
		}
		seen[text] = true
	}
}
