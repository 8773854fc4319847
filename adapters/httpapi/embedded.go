package httpapi

// Names under which types are embedded in others: huma and encoding/json see
// embedded structs with exported names only.
type (
	// Paging is the query of a list.
	Paging = paging
	// Purchase is the header and the query of a call that costs money.
	Purchase = purchase
	// Idempotent is the header of a call that can be repeated.
	Idempotent = idempotent
	// OneSession is the path of an operation on one session.
	OneSession = sessionPath
	// RechargeFields are the fields of a recharge order.
	RechargeFields = rechargeReply
	// SessionFields are the fields of a session.
	SessionFields = sessionReply
	// ProxyFields are the fields of a proxy.
	ProxyFields = proxyReply
	// AccountFields are the fields of an account.
	AccountFields = accountReply
	// KeyFields are the fields of a key.
	KeyFields = keyReply
	// HealthFields are the fields that every statement about health has.
	HealthFields = sessionHealthBrief
	// FigureFields are the counters of one source.
	FigureFields = figuresReply
	// EventFields are the fields of a reported event.
	EventFields = eventFields
)
