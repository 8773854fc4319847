package httpapi

import (
	"strings"
	"time"

	"agentproxy/domain"
	"agentproxy/domain/billing"
	"agentproxy/domain/recharge"
)

// The replies that the document shows. Their types give its schemas, so an
// example has the fields that the service answers.

func usd(text string) money { return money(domain.MustMoney(text)) }

const (
	exampleAgent   = "agt_" + exampleID
	exampleSession = "sess_" + exampleID
	examplePass    = "mfzwizlbonsgk3tumfzwizlbonsgk3tu"
	exampleWallet  = "TExampLe1111111111111111111111111x" // no wallet takes it
)

var (
	examplePagination = paginationReply{Page: 1, PageSize: 20, Total: 1, TotalPages: 1}

	exampleLater = exampleTime.Add(30 * 24 * time.Hour)

	exampleTrial      = trialReply{true, usd("10"), domain.Currency, maybeStamp(exampleTime.AddDate(0, 0, 14))}
	exampleReferral   = referralReply{"ref_" + exampleID, "Partner", "PARTNER-1"}
	exampleRegistered = registeredReply{
		AgentID:       exampleAgent,
		Name:          "Price watcher",
		Status:        "active",
		APIKey:        "ak_…",
		APISecret:     "sk_…",
		Trial:         exampleTrial,
		CreatedAt:     stamp(exampleTime),
		Referral:      &exampleReferral,
		WebhookSecret: "whsec_…",
	}
	exampleAccount = accountReply{
		AgentID:       exampleAgent,
		Name:          "Price watcher",
		ContactEmail:  "ops@example.com",
		Status:        "active",
		AuthMode:      "api_key",
		RateLimit:     rateLimitReply{600, 600},
		Tier:          "trial",
		Trial:         exampleTrial,
		Referral:      referralReply{AgentID: "ref_" + exampleID, Name: "openAgent"},
		BillingUserID: "usr_" + exampleID,
		CreatedAt:     stamp(exampleTime),
		UpdatedAt:     stamp(exampleTime),
	}
	exampleKey = keyReply{KeyID: "key_" + exampleID, Name: "CI", Hint: "x4Ab", Permissions: []string{"sessions:read"},
		CreatedAt: stamp(exampleTime)}
	exampleIssuedKey = issuedKeyReply{exampleKey, "ak_…"}
	exampleToken     = tokenReply{
		"eyJ…",
		"Bearer",
		3600,
		tokenAgentReply{exampleAgent, "Price watcher", []string{"sessions:read", "sessions:write"}},
	}

	exampleProduct = productReply{
		ProductNo:    "dyn_global_1",
		Name:         "Dynamic, global",
		Type:         "dynamic",
		Price:        usd("0.25"),
		Unit:         "GB",
		Currency:     domain.Currency,
		Description:  "Rotating exits in every country.",
		Countries:    []string{"DE", "US"},
		Cities:       []string{},
		Durations:    []durationReply{},
		Protocols:    []string{"http", "socks5"},
		MinQuantity:  1,
		MaxQuantity:  1,
		MinTrafficGB: 100_000_000,
		MaxTrafficGB: 1_000_000_000_000,
		TrafficStep:  1_000_000,
		Provisioning: "async",
		Delivery:     "gateway",
		MinTier:      "trial",
		TrialCredit:  true,
		FairUseGB:    -1,
		Available:    true,
	}
	exampleProducts = productsReply{[]productReply{exampleProduct}, examplePagination}
	exampleRegions  = regionsReply{
		[]regionReply{{"DE", "Germany", []string{"BER"}, []string{"dynamic", "static"}}},
	}
	exampleGB              = gigabytes(1_000_000_000)
	exampleRecommendations = recommendationsReply{
		[]recommendationReply{{ProductNo: "dyn_global_1", Name: "Dynamic, global",
			Type: "dynamic", Price: usd("0.25"), Unit: "GB", Score: 0.95, Reasons: []string{"rotating exits suit web_scraping"},
			EstimatedCost: usd("0.25"), WithinBudget: true,
			Create: suggestionReply{
				"dynamic",
				suggestedConfigReply{ProductNo: "dyn_global_1", TrafficGB: &exampleGB, Country: "US"},
			}}},
	}

	exampleProxy = proxyReply{"http", "proxy.example.com", 8081, exampleID + "r0", examplePass,
		"http://" + exampleID + "r0:" + examplePass + "@proxy.example.com:8081",
		"http://" + exampleID + "r0:" + examplePass + "@proxy.example.com:8081",
		"socks5://" + exampleID + "r0:" + examplePass + "@proxy.example.com:8081"}
	exampleCost    = costReply{usd("0.03"), usd("0.22"), usd("0"), domain.Currency}
	exampleDynamic = sessionReply{
		SessionID:    exampleSession,
		Type:         "dynamic",
		Status:       "active",
		ProductNo:    "dyn_global_1",
		Quantity:     1,
		DurationDays: -1,
		TrafficGB:    1_000_000_000,
		Proxy:        &exampleProxy,
		Location:     locationReply{"US", ""},
		Rotation: rotationReply{
			Mode:            "on_demand",
			IntervalSeconds: -1,
		},
		Health: workersHealthReply{sessionHealthBrief{100, 1, "low", "ok"}, nil},
		Usage: usageReply{
			Traffic: trafficReply{1_000_000_000, 120_000_000, 880_000_000, 1_000_000_000, -1, 120_000_000, 20_000_000,
				100_000_000, 880_000_000, 1200},
			Connections: 12,
			Time:        timeReply{maybeStamp(exampleTime), maybeStamp{}, -1},
			Cost:        exampleCost,
			AsOf:        stamp(exampleTime),
		},
		Cost:        exampleCost,
		IPList:      []ipListReply{},
		AllowedIPs:  []string{},
		CreatedAt:   stamp(exampleTime),
		ActivatedAt: maybeStamp(exampleTime),
	}
	exampleStatic   = staticExample()
	exampleCreating = creatingExample()
	exampleEnded    = endedExample()

	exampleVerdict  = sessionHealthBrief{75, 0.9, "medium", "consider_rotate"}
	exampleReported = reportedReply{"evt_" + exampleID, sessionHealthShort{exampleVerdict, "block_rate"}}
	exampleBatch    = batchReply{1, 1, []resultReply{{0, exampleSession, "accepted", nil},
		{
			1,
			"sess_unknown",
			"rejected",
			&resultErrorReply{"SESSION_NOT_FOUND", "no session has this id; list your sessions to find it"},
		}}}
	exampleFigures = figuresReply{
		10,
		byTypeReply{Success: 9, Block: 1},
		map[string]int64{"200": 9, "403": 1},
		240.5,
		812,
		maybeStamp(exampleTime),
	}
	exampleSeen   = observedReply{1, byTypeReply{Timeout: 1}, map[string]int64{}, maybeStamp(exampleTime)}
	exampleHealth = sessionHealthReply{
		HealthFields:      exampleVerdict,
		Reason:            "block_rate",
		Confidence:        0.77,
		RetryAfterSeconds: -1,
		WorstHosts: []worstHostReply{
			{"shop.example", 4, 0.97},
		},
		Stats: healthStatsReply{FigureFields: exampleFigures, Rotations: 1,
			Observed: exampleSeen, CurrentExit: exitReply{exampleFigures, exampleSeen}},
	}
	exampleEvents = eventsReply{
		[]eventReply{{EventID: "evt_" + exampleID, At: stamp(exampleTime), Source: "gateway", Type: "tunnel",
			TargetHost: "shop.example", StatusCode: 200, Bytes: 48_213, LatencyMS: 31, ExitIP: "203.0.113.7", Count: 1}},
		examplePagination,
	}

	exampleBalance      = balanceReply{usd("9.75"), domain.Currency, usd("0.25"), exampleTrial}
	exampleTransactions = transactionsReply{
		[]transactionReply{{TransactionID: "txn_" + exampleID, Type: "hold", Amount: usd("-0.25"),
			BalanceAfter: usd(
				"9.75",
			), Currency: domain.Currency, Description: "1 GB of dyn_global_1", SessionID: exampleSession,
			CreatedAt: stamp(exampleTime)}},
		examplePagination,
	}
	exampleRecharge = rechargeReply{
		OrderID:    "PAY20260515120000" + exampleID,
		Status:     "pending",
		Amount:     usd("25.5"),
		AmountUSDT: usd("25.5"),
		Currency:   domain.Currency,
		Network:    network,
		Wallet:     exampleWallet,
		ExpireTime: stamp(exampleTime.Add(recharge.Window)),
		CreatedAt:  stamp(exampleTime),
	}
	exampleRechargeStatus = rechargeStatusReply{RechargeFields: paidExample(), Confirmations: 19, Required: 19,
		TxHash: maybeText(strings.Repeat("9c1f", 16)), PaidAt: maybeStamp(exampleTime.Add(3 * time.Minute))}
	exampleRechargeQuote = dryRunReply{true, 0, domain.Currency, usd("35.25")}

	exampleWebhook = webhookReply{
		URL:            "https://example.com/hook",
		SecretHint:     "8Dc=",
		Status:         "enabled",
		LastDeliveryAt: maybeStamp(exampleTime),
	}
	exampleDelivery = deliveryReply{
		DeliveryID:     "dlv_" + exampleID,
		EventID:        "evt_" + exampleID,
		Type:           "session.terminated",
		Status:         "delivered",
		Attempts:       1,
		LastStatusCode: 204,
		CreatedAt:      stamp(exampleTime),
	}
	examplePending = deliveryReply{
		DeliveryID:     "dlv_" + exampleID,
		EventID:        "evt_" + exampleID,
		Type:           "session.terminated",
		Status:         "pending",
		Attempts:       9,
		LastStatusCode: 500,
		LastError:      "the endpoint answered 500; answer any 2xx to accept an event",
		NextAttemptAt:  maybeStamp(exampleTime),
		CreatedAt:      stamp(exampleTime),
	}

	exampleReport = reportReply{
		"day",
		stamp(exampleTime.Truncate(24 * time.Hour)),
		stamp(exampleTime.Truncate(24 * time.Hour).Add(24 * time.Hour)),
		domain.Currency,
		reportTotalsReply{usd("0.03"), 120_000_000, 1},
		[]reportItemReply{{exampleSession, "dynamic", "dyn_global_1", usd("0.03"), 0, 120_000_000, 120_000_000, 12}},
		nil,
	}
	exampleStatement = statementReply{"2026-05", stamp(exampleMonth), stamp(exampleMonth.AddDate(0, 1, 0)),
		domain.Currency, usd("10"), usd("9.97"),
		amounts{billing.HoldEntry: domain.MustMoney("-0.25"), billing.Release: domain.MustMoney("0.22")},
		[]statementItemReply{{exampleSession, "dynamic", "dyn_global_1", usd("0.25"), usd("0.03"), usd("0.22"), 0,
			usd("-0.03")}},
		examplePagination}
	exampleMonth  = time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	exampleDaily  = domain.MustMoney("5")
	exampleBudget = budgetReply{
		DailyLimit:      limit{&exampleDaily},
		AlertThresholds: []int{50, 90},
		SpentToday:      usd("0.25"),
		SpentTotal:      usd("0.25"),
		Currency:        domain.Currency,
	}

	exampleOverview = overviewReply{
		Balance:        usd("9.75"),
		Currency:       domain.Currency,
		Held:           usd("0.22"),
		ActiveSessions: 1,
		TotalSessions:  3,
		TotalSpent:     usd("0.03"),
		TrafficUsedGB:  120_000_000,
		EventsReported: 10,
		SuccessRate:    0.9,
		Rotations:      1,
	}
	exampleTraffic = trafficStatsReply{
		"day",
		[]trafficBucketReply{
			{stamp(exampleTime.Truncate(24 * time.Hour)), 120_000_000, 120_000_000, 20_000_000, 100_000_000, 12},
		},
	}
	exampleCosts = costStatsReply{
		"day",
		[]costBucketReply{{stamp(exampleTime.Truncate(24 * time.Hour)), usd("0.03"), 0, 0, domain.Currency}},
	}
)

func staticExample() sessionReply {
	s := exampleDynamic
	s.Type, s.ProductNo, s.DurationDays, s.TrafficGB = "static", "sta_isp_1", 30, -1
	s.Rotation.Mode, s.ExpiresAt = "fixed", maybeStamp(exampleLater)
	s.Usage.Traffic = trafficReply{-1, 120_000_000, -1, -1, maybeGB(100 * billing.GB), 120_000_000, 20_000_000,
		100_000_000, -1, -1}
	s.Usage.Time = timeReply{maybeStamp(exampleTime), maybeStamp(exampleLater), 2_592_000}
	s.Cost = costReply{usd("1"), 0, 0, domain.Currency}
	s.Usage.Cost = s.Cost
	s.IPList = []ipListReply{{"198.51.100.4", "US", "", exampleProxy}}
	return s
}

func creatingExample() sessionReply {
	s := exampleDynamic
	s.Status, s.Proxy, s.ActivatedAt = "creating", nil, maybeStamp{}
	s.Cost = costReply{0, usd("0.25"), 0, domain.Currency}
	s.Usage = usageReply{
		Traffic: trafficReply{1_000_000_000, 0, 1_000_000_000, 1_000_000_000, -1, 0, 0, 0, 1_000_000_000, 0},
		Time:    timeReply{RemainingSeconds: -1},
		Cost:    s.Cost,
		AsOf:    stamp(exampleTime),
	}
	return s
}

func paidExample() rechargeReply {
	r := exampleRecharge
	r.Status, r.ReceivedUSDT = "paid", r.AmountUSDT
	return r
}

func endedExample() sessionReply {
	s := exampleDynamic
	s.Status, s.StatusReason, s.Proxy, s.EndedAt = "terminated", "agent_request", nil, maybeStamp(
		exampleTime.Add(time.Hour),
	)
	s.Cost = costReply{usd("0.03"), 0, 0, domain.Currency}
	s.Usage.Cost = s.Cost
	return s
}
