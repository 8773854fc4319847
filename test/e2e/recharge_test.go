package e2e_test

import (
	"bytes"
	"encoding/json"
	"image/png"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"agentproxy/test/campaign"
	"agentproxy/test/fake/trongrid"
	"agentproxy/test/freeport"
	"agentproxy/test/syncbuffer"
)

// orderData is what the tests read of a recharge order.
type orderData struct {
	OrderID       string      `json:"order_id"`
	Status        string      `json:"status"`
	AmountUSDT    json.Number `json:"amount_usdt"`
	Received      json.Number `json:"received_usdt"`
	Wallet        string      `json:"wallet_address"`
	TxHash        string      `json:"tx_hash"`
	Confirmations int         `json:"confirmations"`
	Required      int         `json:"required_confirmations"`
}

// testXPub is a published test key (BIP-39 "abandon … about"): never one for money.
const testXPub = "xpub6D1AabNHCupeiLM65ZR9UStMhJ1vCpyV4XbZdyhMZBiJXALQtmn9p42VTQckoHVn8WNqS7dqnJokZHAHcHGoaQgmv8D45oNUKx6DZMNZBCd"

func (s *service) recharge(key, amount string) orderData {
	s.t.Helper()
	var o orderData
	s.must(201, "POST", "/billing/recharge", key, `{"amount":`+amount+`,"payment_method":"usdt"}`).into(s.t, &o)
	return o
}

func (s *service) order(key, id string) orderData {
	s.t.Helper()
	var o orderData
	s.must(200, "GET", "/billing/recharge/"+id+"/status", key, "").into(s.t, &o)
	return o
}

// balance returns the spendable balance as the API writes it.
func (s *service) balance(key string) string {
	s.t.Helper()
	var b struct{ Balance json.Number }
	s.must(200, "GET", "/billing/balance", key, "").into(s.t, &b)
	return b.Balance.String()
}

func TestMoneyArrivesByTheDevelopmentChain(t *testing.T) {
	onEachStore(t, moneyArrivesByTheDevelopmentChain)
}

func moneyArrivesByTheDevelopmentChain(t *testing.T, store ...string) {
	// A transfer is in the next block, and final after five of them or when another duration is set.
	s := serve(t, append(slices.Clone(store), "AGENTPROXY_DEVCHAIN_BLOCK_MS=6000", "AGENTPROXY_RATE_LIMIT_PER_MINUTE=0")...)
	key, id := s.register("payer")
	o := s.recharge(key, "12.50")
	if o.Status != "pending" || o.AmountUSDT != "12.5" || len(o.Wallet) != 34 || !strings.HasPrefix(o.Wallet, "T") {
		t.Fatalf("the order is %+v", o)
	}
	sent := s.object("devchain", "send", "--to", o.Wallet, "--amount", "12.50")
	within(t, soon, "the order is confirming", func() bool { return s.order(key, o.OrderID).Status == "confirming" })
	if b := s.balance(key); b != "10" {
		t.Errorf("the balance is %s with money that is not final", b)
	}
	s.stop()
	s.setEnv("AGENTPROXY_DEVCHAIN_BLOCK_MS", "50")
	s.start()
	within(t, soon, "the order is paid", func() bool { return s.order(key, o.OrderID).Status == "paid" })
	paid := s.order(key, o.OrderID)
	if paid.Received != "12.5" || paid.TxHash != sent["tx_hash"] || paid.Confirmations != paid.Required {
		t.Errorf("the paid order is %+v, sent %v", paid, sent)
	}
	if b := s.balance(key); b != "22.5" {
		t.Errorf("the balance is %s, want 22.5", b)
	}
	var account struct {
		Trial struct {
			IsTrial bool `json:"is_trial"`
		}
	}
	if s.must(200, "GET", "/account/info", key, "").into(t, &account); account.Trial.IsTrial {
		t.Error("an account that was paid into is a trial")
	}

	resp, err := http.NewRequest("GET", "http://"+s.api+"/v1/billing/recharge/"+o.OrderID+"/qr", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Header.Set("X-API-Key", key)
	qr, err := http.DefaultClient.Do(resp)
	if err != nil {
		t.Fatal(err)
	}
	defer qr.Body.Close()
	picture, _ := io.ReadAll(qr.Body)
	if _, err := png.Decode(bytes.NewReader(picture)); err != nil || qr.Header.Get("Content-Type") != "image/png" {
		t.Errorf("the QR code is %s: %v", qr.Header.Get("Content-Type"), err)
	}

	other, _ := s.register("stranger")
	if r := s.must(404, "GET", "/billing/recharge/"+o.OrderID+"/status", other, ""); r.code() != "ORDER_NOT_FOUND" {
		t.Errorf("another agent's order is %s", r.code())
	}
	if got := s.object("recharge", "show", o.OrderID); got["status"] != "paid" || got["agent_id"] != id || len(got["transfers"].([]any)) != 1 {
		t.Errorf("recharge show: %v", got)
	}
	if got := s.object("recharge", "audit"); got["differences"] != 0.0 {
		t.Errorf("recharge audit: %v", got)
	}
	if got := s.object("recharge", "rescan", "--from", "2020-01-01"); got["credited"] != 0.0 {
		t.Errorf("a rescan credited again: %v", got)
	}
	if out, err := s.run("devchain", "send", "--to", "TXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX", "--amount", "1"); exit(err) != 1 || !strings.Contains(out, "address") {
		t.Errorf("sent to a mistyped address: %v\n%s", err, out)
	}
	s.verify()
}

func TestMoneyArrivesByTron(t *testing.T) {
	onEachStore(t, moneyArrivesByTron)
}

func TestMoneyArrivesByANode(t *testing.T) {
	t.Parallel()
	moneyArrivesByTron(t, "AGENTPROXY_TRON_SOURCE=jsonrpc")
}

func moneyArrivesByTron(t *testing.T, store ...string) {
	tron := trongrid.Start(t)
	const contract = "TXLAQ63Xg1NAzckPwKHvzw7CSEmLMEqcdj"
	tron.SetToken(contract)
	s := serve(t, append(store, "AGENTPROXY_TRON_XPUB="+testXPub, "AGENTPROXY_TRON_NETWORK=nile", "AGENTPROXY_TRON_CONTRACT="+contract,
		"AGENTPROXY_TRON_API_URL="+tron.URL, "AGENTPROXY_TRON_API_KEY=hush-hush", "AGENTPROXY_RATE_LIMIT_PER_MINUTE=0")...)
	key, _ := s.register("payer")
	o := s.recharge(key, "25")
	if o.Wallet != "TSeJkUh4Qv67VNFwY8LaAxERygNdy6NQZK" { // that of index 1, as wallets derive it
		t.Fatalf("the address is %s", o.Wallet)
	}
	tron.Fail("/", trongrid.TooMany, campaign.Rounds(0, 1)) // the pause that it asks for is half a minute
	txid := tron.Send(trongrid.Address(7), o.Wallet, 25_000_000)
	tron.Mine(1)
	within(t, 2*soon, "the order is confirming", func() bool { return s.order(key, o.OrderID).Status == "confirming" })
	if b := s.balance(key); b != "10" {
		t.Errorf("money that is not solid was credited: %s", b)
	}
	tron.Mine(25)
	within(t, soon, "the order is paid", func() bool { return s.order(key, o.OrderID).Status == "paid" })
	if got := s.order(key, o.OrderID); got.TxHash != txid || s.balance(key) != "35" {
		t.Errorf("paid by %s with a balance of %s, want %s and 35", got.TxHash, s.balance(key), txid)
	}
	if got := s.object("recharge", "audit"); got["differences"] != 0.0 {
		t.Errorf("recharge audit: %v", got)
	}
	if strings.Contains(s.log.String(), "hush-hush") {
		t.Error("the log shows the key of the API")
	}
	s.verify()
}

func TestAKilledServiceCreditsEveryTransferOnce(t *testing.T) {
	onEachStore(t, aKilledServiceCreditsEveryTransferOnce)
}

func aKilledServiceCreditsEveryTransferOnce(t *testing.T, store ...string) {
	s := serve(t, append(store, "AGENTPROXY_DEVCHAIN_BLOCK_MS=50", "AGENTPROXY_RATE_LIMIT_PER_MINUTE=0")...)
	key, _ := s.register("payer")
	kills, moments := campaign.Rounds(3, 8), campaign.Rand(t, 5)
	o := s.recharge(key, strconv.Itoa(5*kills))
	for range kills {
		before := s.balance(key)
		s.object("devchain", "send", "--to", o.Wallet, "--amount", "5")
		switch moments.IntN(3) {
		case 0: // maybe unseen
		case 1:
			within(t, soon, "the transfer is seen", func() bool { return s.order(key, o.OrderID).Status != "pending" })
		case 2:
			within(t, soon, "the transfer is credited", func() bool { return s.balance(key) != before })
		}
		s.kill()
		s.start()
	}
	within(t, soon, "the order is paid", func() bool { return s.order(key, o.OrderID).Status == "paid" })
	if got, want := s.balance(key), strconv.Itoa(10+5*kills); got != want {
		t.Errorf("the balance is %s, want %s", got, want)
	}
	s.verify()
}

func TestAChainThatCannotBeIsRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	const xpub = testXPub
	for name, c := range map[string]struct {
		env  []string
		want string
	}{
		"both chains":          {[]string{"AGENTPROXY_TRON_XPUB=" + xpub, "AGENTPROXY_DEVCHAIN_BLOCK_MS=1000"}, "AGENTPROXY_DEVCHAIN_BLOCK_MS"},
		"a token of one's own": {[]string{"AGENTPROXY_TRON_XPUB=" + xpub, "AGENTPROXY_TRON_CONTRACT=TXYZopYRdj2D9XRtbG411XZZ3kM5VkAeBf"}, "AGENTPROXY_TRON_CONTRACT"},
		"a key for no chain":   {[]string{"AGENTPROXY_TRON_API_KEY=hush"}, "AGENTPROXY_TRON_XPUB"},
		"a truncated key":      {[]string{"AGENTPROXY_TRON_XPUB=" + xpub[:100]}, "AGENTPROXY_TRON_XPUB"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &service{t: t, dir: t.TempDir(), api: freeport.Address(t), gateway: freeport.Address(t), admin: freeport.Address(t), env: c.env}
			out, err := s.run("serve")
			if exit(err) != 1 || !strings.Contains(out, c.want) || strings.Contains(out, "hush") || strings.Contains(out, xpub[:100]) {
				t.Errorf("exit %d, want 1 with %s:\n%s", exit(err), c.want, out)
			}
		})
	}
	s := shared(t)
	s.env = append(slices.Clone(s.env), "AGENTPROXY_TRON_XPUB="+xpub)
	if out, err := s.run("devchain", "send", "--to", "TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH", "--amount", "1"); exit(err) != 1 || !strings.Contains(out, "TRON_XPUB") {
		t.Errorf("development money beside a real account: %v\n%s", err, out)
	}
}

// The example of an agent that nothing can call: it is woken by the event of its payment.
func TestAnAgentWaitsForItsPayment(t *testing.T) {
	onEachStore(t, func(t *testing.T, store ...string) {
		s := serve(t, append(slices.Clone(store), "AGENTPROXY_DEVCHAIN_BLOCK_MS=50")...)
		key, _ := s.register("waiter")
		cmd := exec.CommandContext(t.Context(), waitpaid)
		cmd.Env = append(os.Environ(), "AGENTPROXY_URL=http://"+s.api, "AGENTPROXY_API_KEY="+key, "AMOUNT=7.5")
		out := &syncbuffer.Buffer{}
		cmd.Stdout, cmd.Stderr = out, out
		ok(t, cmd.Start())
		var wallet string
		within(t, soon, "the order", func() bool {
			_, after, _ := strings.Cut(out.String(), " to ")
			wallet, _, _ = strings.Cut(after, "\n")
			return len(wallet) == 34
		})
		s.object("devchain", "send", "--to", wallet, "--amount", "7.50")
		if err := cmd.Wait(); err != nil || !strings.HasSuffix(out.String(), "paid\n") {
			t.Errorf("%v\n%s", err, out)
		}
		// apx shows the same, to those who may read it.
		text, err := s.client(t.TempDir(), key, "events", "--types", "recharge.paid").CombinedOutput()
		if err != nil || !strings.Contains(string(text), " recharge.paid order_id=PAY") {
			t.Errorf("apx events: %v\n%s", err, text)
		}
	})
}
