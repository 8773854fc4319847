package binding

import (
	"strings"

	"agentproxy/domain/spelling"
)

// guess is what some usual words for a field mean here.
type guess struct {
	names []string // of fields or parameters, the most probable first
	// elsewhere is where the setting belongs in an operation that has none of the names. It is set for
	// guards alone: a call that ignores one does what the caller has forbidden.
	elsewhere string
}

// guessed has the words that callers send for names of the API, folded. Bodies that ignore unknown fields
// refuse these all the same.
var guessed = func() map[string]guess {
	all := map[string]guess{}
	for _, g := range []struct{ words, names, elsewhere string }{
		// Guards.
		{"simulate simulation preview validate_only check_only test_run what_if quote_only dry_run",
			"dry_run", "?dry_run=true in the query, of the calls that cost money"},
		{"idempotency idempotency_key idempotent_key idempotency_token x_idempotency_key client_token " +
			"purchase_id",
			"", "the header Idempotency-Key, of the calls that cost money"},
		{"max_price maximum_cost maximum_price max_cost_usd max_price_usd cost_limit price_limit " +
			"limit_cost cost_max price_max max_amount max_spend max_spending spend_limit spending_limit " +
			"budget max_budget budget_limit budget_usd max_total total_max max_usd cost_cap price_cap " +
			"max_charge max_cost_limit max_total_cost max_payment max_price_per_gb",
			"max_cost", "max_cost of a purchase, or PUT /billing/budget"},
		{"scopes scope permission permissions grants allowed_scopes",
			"permissions", "permissions, of POST /account/keys and POST /auth/token"},
		{"ip_whitelist whitelist ip_allowlist allowlist allowed_ip allow_ips whitelisted_ips client_ips " +
			"authorized_ips",
			"allowed_ips", ""},
		{"expires_in expiry expiration expires ttl valid_until valid_for expiration_date expire_time " +
			"end_date",
			"expires_at ttl_seconds", ""},
		{"daily_budget daily_max day_limit", "daily_limit", ""},
		{"total_budget limit", "total_limit page_size", ""},
		{"max_traffic traffic_limit byte_limit limit_bytes", "max_bytes traffic_gb", ""},
		{"denied denied_hosts deny_list denylist blocklist blocked blocked_hosts blacklist", "deny", ""},
		{"allowed allowed_hosts allow_list allowed_domains", "allow", ""},
		// What is bought.
		{"gb gbs gigabytes traffic traffic_size traffic_amount size size_gb amount_gb data_gb volume_gb " +
			"bandwidth bandwidth_gb quantity_gb",
			"traffic_gb add_gb", ""},
		{"count amount qty ip_count num_ips number_of_ips ips", "quantity session_count", ""},
		{"days period term", "duration_days duration", ""},
		{"location region geo nation country_name iso_country target_country",
			"country country_code target_region", ""},
		// Words of the other form of a create call.
		{"country country_code", "target_region country_code country", ""},
		{"duration", "duration_days", ""},
		{"duration_days", "duration", ""},
		{"session_type", "type", ""},
		{"rotation_mode rotation_interval_seconds", "rotation", ""},
		{"rotation mode interval_seconds", "rotation_mode", ""},
		{"city_name city_code town", "city", ""},
		{"product product_id product_code product_number sku plan", "product_no", ""},
		{"kind session_kind product_type", "type session_type", ""},
		{"proxy_type proxy_protocol scheme", "protocol", ""},
		{"sticky sticky_session sticky_ip session_ttl rotate rotating rotation_type rotation_interval " +
			"rotation_minutes interval rotation_period rotate_every ttl",
			"rotation rotation_mode require_sticky_ip", ""},
		// The account and its money.
		{"referrer_code referrer referral ref ref_code referral_id referred_by invite_code " +
			"invitation_code promo_code partner_code",
			"referral_code", ""},
		{"webhook webhooks callback callback_url notify_url notification_url hook_url", "webhook_url", ""},
		{"email e_mail mail email_address", "contact_email", ""},
		{"chain blockchain token_network payment_network", "network", ""},
		{"coin asset token", "currency", ""},
		{"method payment pay_with", "payment_method", ""},
		// Queries.
		{"per_page size page_limit", "page_size", ""},
		{"state", "status", ""},
		{"from since start start_time", "start_date from created_from", ""},
		{"to until end end_time", "end_date to created_to", ""},
	} {
		for word := range strings.FieldsSeq(g.words) {
			one := all[spelling.Fold(word)]
			one.names = append(one.names, strings.Fields(g.names)...)
			if one.elsewhere == "" {
				one.elsewhere = g.elsewhere
			}
			all[spelling.Fold(word)] = one
		}
	}
	return all
}()
