package doctor

import (
	"fmt"
	"maps"
	"slices"

	"agentproxy/adapters/configfile"
	"agentproxy/adapters/upstream/embedded"
	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/procurement"
	"agentproxy/domain/recharge"
	"agentproxy/ports"
)

// accounts checks who may open an account, and what trial credit strangers can gather.
func (f *Findings) accounts(s configfile.Settings) {
	f.ok("registration", "Registration is %s.", s.Registration)
	if s.Registration == account.ClosedRegistration {
		return
	}
	if s.RegisterLimit == 0 {
		f.add(Error, "registration", "Registrations are not limited.", "One host opens accounts without end.",
			"Set AGENTPROXY_REGISTER_LIMIT_PER_MINUTE, for example to 120.")
	}
	if s.TrialBalance == 0 {
		f.ok("trial", "New accounts get no trial credit.")
		return
	}
	bounded := true
	for _, b := range []struct {
		variable, what, say string
		off                 bool
	}{
		{"AGENTPROXY_TRIAL_PER_NETWORK", "Trials from one network are not limited.", "5", s.TrialPerNetwork == 0},
		{"AGENTPROXY_TRIAL_DAILY_TOTAL", "The trial credit of a day is not limited.", "100 trial balances",
			s.TrialDailyTotal == 0},
	} {
		if b.off {
			bounded = false
			f.add(Error, "trial", b.what, "Trial credit is gathered with accounts made by a script.", "Set "+b.variable+
				", for example to "+b.say+".")
		}
	}
	if bounded {
		f.ok("trial", "A new account gets %s USD for %d days, %d accounts a day of one network, %s USD a day in all.",
			s.TrialBalance, s.TrialDays, s.TrialPerNetwork, s.TrialDailyTotal)
	}
	if s.ClientAddressDays == 0 {
		f.add(Warning, "client_addresses", "The client address of a registration is not kept.",
			"Accounts of one abuser cannot be found by it.", "Set AGENTPROXY_CLIENT_ADDRESS_DAYS, for example to 90.")
	}
}

// limits checks the limits of a single agent.
func (f *Findings) limits(s configfile.Settings) {
	before := len(*f)
	for _, l := range []struct {
		variable, what string
		value          int
	}{
		{"AGENTPROXY_RATE_LIMIT_PER_MINUTE", "Requests of an agent", s.RateLimit},
		{"AGENTPROXY_SESSION_LIMIT", "Live sessions of an agent", s.SessionLimit},
		{"AGENTPROXY_AGENT_CONNECTIONS", "Connections of an agent", s.AgentConnections},
		{"AGENTPROXY_AGENT_CONNECTIONS_TRIAL", "Connections of a trial account", s.TrialConnections},
		{"AGENTPROXY_CONNECTIONS_PER_SECOND", "New connections of an agent", s.ConnectionRate},
		{"AGENTPROXY_CONNECTIONS_PER_SECOND_TRIAL", "New connections of a trial account", s.TrialConnectionRate},
		{"AGENTPROXY_TARGETS_PER_MINUTE", "Different targets of an agent", s.Targets},
		{"AGENTPROXY_TARGETS_PER_MINUTE_TRIAL", "Different targets of a trial account", s.TrialTargets},
		{"AGENTPROXY_TARGET_RATE_PER_MINUTE", "New connections of an agent to one domain", s.TargetRate},
		{"AGENTPROXY_TARGET_RATE_PER_MINUTE_TRIAL", "New connections of a trial account to one domain", s.TrialTargetRate},
	} {
		if l.value == 0 {
			f.add(Warning, "limits", l.what+" are not limited.", "One account uses up what all share, or attacks a target "+
				"in your name.",
				"Set "+l.variable+" above 0.")
		}
	}
	if len(*f) == before {
		f.ok("limits", "Requests, sessions and connections of an agent are limited.")
	}
}

// payments checks whether agents can pay, and with real money.
func (f *Findings) payments(s configfile.Settings) {
	if s.Dev { // the development chain belongs to the mode, which is a finding of its own
		return
	}
	warnings := s.Payments.Warnings()
	for _, w := range warnings {
		f.add(Warning, "payments", w.Error()+".", "Agents cannot pay, or payments are credited late.",
			"Set the variable; see docs/money.md.")
	}
	if n := s.Payments.Network; n != "" && n != "tron-mainnet" {
		f.add(Error, "payments", "Payments come from the test network "+n+".", "Its coins are free, and buy real "+
			"traffic here.",
			"Set AGENTPROXY_TRON_NETWORK=mainnet.")
	} else if len(warnings) == 0 {
		f.ok("payments", "Payments come from %s.", n)
	}
}

// FirstAddress checks that the address that wallets show for the account has no money but payments. Given means
// that it is an agent's, as those of earlier versions are.
func FirstAddress(address string, unexplained domain.Money, given bool, err error) (f Findings) {
	const own = "Use an account of its own for AGENTPROXY_TRON_XPUB, and collect to an address outside it."
	switch {
	case err != nil:
		f.add(Warning, "first_address", "The chain could not be asked for "+address+": "+err.Error(),
			"Whether the account is used for other things is not known.", "Check AGENTPROXY_TRON_API_URL and its key.")
	case unexplained > 0 && given:
		f.add(Error, "first_address", fmt.Sprintf("%s has %s USDT that no payment explains, and is an agent's.", address,
			unexplained),
			"Wallets show it as the address of the account: what others send there is credited to that agent.", own)
	case unexplained > 0:
		f.add(Warning, "first_address",
			fmt.Sprintf("%s, the first address of the account, has %s USDT.", address, unexplained),
			"The account is used for other things than payments of agents.", own)
	default:
		f.ok("first_address", "The first address of the account has no money that no payment explains.")
	}
	return f
}

// PlayMoney checks that no wallet has money that cost nothing where payments are real.
func PlayMoney(s configfile.Settings, wallets int, left, held domain.Money) (f Findings) {
	if wallets == 0 || s.Payments.Network != recharge.MainNetwork {
		return nil
	}
	do := "Run agentproxy recharge write-off --reason TEXT; the service does not start before."
	if held > 0 {
		do = fmt.Sprintf("Purchases hold %s of it: end them with agentproxy session end in a service without real payments. ",
			held) + do
	}
	f.add(Error, "play_money",
		fmt.Sprintf("%d wallets have %s USD that was paid on a development chain or a test network.", wallets, left),
		"It costs nothing there, and buys real traffic here.", do)
	return f
}

// Unconfigured reports providers that are not configured and have something left.
func Unconfigured(missing map[string]ports.Named) (f Findings) {
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		n := missing[name]
		f.add(Error, "unconfigured_provider", fmt.Sprintf("%d live sessions, %d open orders and %d claims of proxies name "+
			"the provider %q, which is not configured.", n.Sessions, n.Orders, n.Claims, name),
			"The agents of these sessions pay and get nothing; what was claimed could be sold again.",
			"Configure the provider under this name, or end the sessions; the service does not start before.")
	}
	return f
}

// products checks what is sold at a loss, or for trial credit.
func (f *Findings) products(s configfile.Settings) {
	before := len(*f)
	for _, p := range s.Catalog.Products {
		for _, from := range p.Sources {
			loss := from.CostFor(0) > p.Price && p.Price > 0
			for _, d := range p.Durations {
				loss = loss || from.CostFor(d.Days) > d.Price
			}
			if loss {
				f.add(Warning, "below_cost", fmt.Sprintf("%s is sold below its cost at %s.", p.No, from.Provider),
					"Every order of it loses money.", "Raise the price, or remove allow_below_cost.")
			}
		}
		if !p.OwnMoneyOnly && s.TrialBalance > 0 && slices.ContainsFunc(p.Sources, atSeller) {
			f.add(Warning, "trial_credit", "Trial credit pays for "+p.No+", which costs you money at a seller.",
				"Strangers spend your money there, up to the trial credit of a day.", "Remove trial_credit: true from the product.")
		}
	}
	if len(*f) == before {
		f.ok("products", "No product is sold below its configured cost, or for trial credit that you pay for.")
	}
}

// atSeller reports whether a delivery of a source costs money: the embedded provider's do not.
func atSeller(from procurement.Source) bool { return from.Provider != embedded.Name }
