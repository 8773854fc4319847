package products

import (
	"context"
	"net/http"
	"strings"

	"agentproxy/adapters/httpapi/openapi"
	"agentproxy/adapters/httpapi/value"
	"agentproxy/domain"
	"agentproxy/domain/catalog"
	"agentproxy/domain/session"
)

type recommendBody struct {
	_               struct{}        `json:"-" additionalProperties:"true"`
	UseCase         catalog.UseCase `json:"use_case,omitempty" nullable:"true" doc:"general is the default."`
	TargetRegion    string          `json:"target_region,omitempty" nullable:"true" maxLength:"64" doc:"A code of GET /products/regions, in any case."`
	Budget          value.Decimal   `json:"budget,omitempty" nullable:"true" exclusiveMinimum:"0" doc:"US dollars for all of it, at most 6 decimals."`
	SessionCount    value.Decimal   `json:"session_count,omitempty" nullable:"true" minimum:"1" maximum:"100" multipleOf:"1" doc:"IPs, or dynamic sessions. 1 is the default."`
	RequireStickyIP bool            `json:"require_sticky_ip,omitempty" nullable:"true" doc:"Leave out what rotates by itself."`
}

type recommendationReply struct {
	ProductNo     string          `json:"product_no" doc:"As GET /products lists it."`
	Name          string          `json:"name" doc:"For people."`
	Type          session.Type    `json:"type" doc:"What kind it is."`
	Price         value.Money     `json:"price" doc:"US dollars for one unit."`
	Unit          string          `json:"unit" enum:"GB,IP" enumName:"Unit" doc:"What the price is for."`
	Score         value.Ratio     `json:"score" doc:"1 fits best."`
	Reasons       []string        `json:"reasons" doc:"Why it fits, for people."`
	EstimatedCost value.Money     `json:"estimated_cost" doc:"What the suggested purchase costs, in US dollars."`
	WithinBudget  bool            `json:"within_budget" doc:"true when no budget was given."`
	Create        suggestionReply `json:"create" doc:"A body that POST /sessions accepts unchanged."`
}

type suggestionReply struct {
	Type   session.Type         `json:"type" doc:"What kind it is."`
	Config suggestedConfigReply `json:"config" doc:"What to send as config of POST /sessions."`
}

type suggestedConfigReply struct {
	ProductNo    string           `json:"product_no" doc:"As GET /products lists it."`
	TrafficGB    *value.Gigabytes `json:"traffic_gb,omitempty" doc:"Traffic to buy in GB."`
	Quantity     int              `json:"quantity,omitempty" doc:"How many addresses."`
	DurationDays int              `json:"duration_days,omitempty" doc:"Days that are paid for."`
	Country      string           `json:"country,omitempty" doc:"An ISO 3166-1 alpha-2 code."`
}

type recommendationsReply struct {
	Items []recommendationReply `json:"items" doc:"This page."`
}

func (s *service) recommend(_ context.Context, in *struct{ Body recommendBody }) (int, recommendationsReply, error) {
	b := in.Body
	w := catalog.Criteria{
		UseCase:         b.UseCase,
		TargetRegion:    strings.TrimSpace(b.TargetRegion),
		RequireStickyIP: b.RequireStickyIP,
	}
	if b.Budget.Given() {
		budget, err := domain.ParseMoney(string(b.Budget))
		if err != nil {
			return 0, recommendationsReply{}, domain.InvalidField(
				"budget",
				"must be an amount above 0 with at most 6 decimals",
			)
		}
		w.Budget = &budget
	}
	if b.SessionCount.Given() {
		n, err := domain.ParseDecimal(string(b.SessionCount), 0)
		if err != nil {
			return 0, recommendationsReply{}, domain.InvalidField("session_count", "must be 1 to 100")
		}
		count := int(n)
		w.SessionCount = &count
	}
	list, err := s.Catalog.Recommend(w)
	return http.StatusOK, recommendationsReply{value.Each(list, toRecommendation)}, err
}

func toRecommendation(r catalog.Recommendation) recommendationReply {
	p := toProduct(r.Product)
	c := suggestedConfigReply{ProductNo: p.ProductNo, Country: r.Create.Country}
	if r.Create.Type == session.Static {
		c.Quantity, c.DurationDays = r.Create.Quantity, r.Create.Days
	} else {
		gb := value.Gigabytes(r.Create.Bytes)
		c.TrafficGB = &gb
	}
	return recommendationReply{ProductNo: p.ProductNo, Name: p.Name, Type: p.Type, Price: p.Price, Unit: p.Unit,
		Score: value.Ratio(r.Score), Reasons: listOf(r.Reasons), EstimatedCost: value.Money(r.EstimatedCost),
		WithinBudget: r.WithinBudget, Create: suggestionReply{r.Create.Type, c}}
}

var (
	exampleGB              = value.Gigabytes(1_000_000_000)
	exampleRecommendations = recommendationsReply{
		[]recommendationReply{{ProductNo: "dyn_global_1", Name: "Dynamic, global",
			Type: "dynamic", Price: openapi.USD("0.25"), Unit: "GB", Score: 0.95,
			Reasons:       []string{"rotating exits suit web_scraping"},
			EstimatedCost: openapi.USD("0.25"), WithinBudget: true,
			Create: suggestionReply{
				"dynamic",
				suggestedConfigReply{ProductNo: "dyn_global_1", TrafficGB: &exampleGB, Country: "US"},
			}}},
	}
)
