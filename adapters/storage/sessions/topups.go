package sessions

import (
	"encoding/json"

	"agentproxy/adapters/storage/column"
	"agentproxy/domain"
	"agentproxy/domain/session"
)

// topUpsText is how the additions to a session are stored. Most sessions have none.
type topUpsText struct {
	Runs      []runText  `json:"runs,omitempty"`
	No        int        `json:"no,omitempty"`
	Day       int64      `json:"day,omitempty"`
	Held      int64      `json:"held,omitempty"`
	Auto      *autoTopUp `json:"auto,omitempty"`
	AutoDay   int64      `json:"auto_day,omitempty"`
	AutoCount int        `json:"auto_count,omitempty"`
	Failed    string     `json:"failed,omitempty"`
	FailedAt  int64      `json:"failed_at,omitempty"`
}

type runText struct {
	Bytes int64 `json:"bytes"`
	Price int64 `json:"price"`
}

type autoTopUp struct {
	Below  int   `json:"below"`
	Bytes  int64 `json:"bytes"`
	PerDay int   `json:"per_day"`
	Price  int64 `json:"price,omitempty"`
}

func joinTopUps(t session.TopUps) string {
	if t.No == 0 && t.Auto == (session.AutoTopUp{}) {
		return ""
	}
	text := topUpsText{No: t.No, Day: column.Micros(t.Day), Held: int64(t.Held), AutoDay: column.Micros(t.AutoDay),
		AutoCount: t.AutoCount, Failed: t.Failed, FailedAt: column.Micros(t.FailedAt)}
	for _, r := range t.Runs {
		text.Runs = append(text.Runs, runText{r.Bytes, int64(r.Price)})
	}
	if t.Auto != (session.AutoTopUp{}) {
		text.Auto = &autoTopUp{t.Auto.BelowPercent, t.Auto.Bytes, t.Auto.MaxPerDay, int64(t.Auto.MaxPrice)}
	}
	b, _ := json.Marshal(text) // of numbers and a code, which cannot fail
	return string(b)
}

func splitTopUps(stored string) (t session.TopUps, err error) {
	if stored == "" {
		return t, nil
	}
	var text topUpsText
	if err := json.Unmarshal([]byte(stored), &text); err != nil {
		return t, err
	}
	t = session.TopUps{No: text.No, Day: column.Time(text.Day), Held: domain.Money(text.Held),
		AutoDay: column.Time(text.AutoDay), AutoCount: text.AutoCount, Failed: text.Failed,
		FailedAt: column.Time(text.FailedAt)}
	for _, r := range text.Runs {
		t.Runs = append(t.Runs, session.Run{Bytes: r.Bytes, Price: domain.Money(r.Price)})
	}
	if text.Auto != nil {
		t.Auto = session.AutoTopUp{BelowPercent: text.Auto.Below, Bytes: text.Auto.Bytes, MaxPerDay: text.Auto.PerDay,
			MaxPrice: domain.Money(text.Auto.Price)}
	}
	return t, nil
}
