package domain_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentproxy/domain"
	"agentproxy/domain/account"
	"agentproxy/domain/billing"
	"agentproxy/domain/catalog"
	"agentproxy/domain/egress"
	"agentproxy/domain/exit"
	"agentproxy/domain/procurement"
	"agentproxy/domain/recharge"
	"agentproxy/domain/replacement"
	"agentproxy/domain/session"
	"agentproxy/domain/webhook"
	"agentproxy/domain/worker"
)

// sentinels are the exported refusals of the domain, by package and name.
var sentinels = map[string]*domain.Error{
	"account.ErrDisabled":            account.ErrDisabled,
	"account.ErrExpiredToken":        account.ErrExpiredToken,
	"account.ErrInvalidKey":          account.ErrInvalidKey,
	"account.ErrFirstKey":            account.ErrFirstKey,
	"account.ErrKeyNotFound":         account.ErrKeyNotFound,
	"account.ErrKeyRestricted":       account.ErrKeyRestricted,
	"account.ErrLastKey":             account.ErrLastKey,
	"account.ErrTooManyKeys":         account.ErrTooManyKeys,
	"account.ErrNotFound":            account.ErrNotFound,
	"account.ErrRateLimited":         account.ErrRateLimited,
	"account.ErrStorageLimit":        account.ErrStorageLimit,
	"account.ErrReferralCode":        account.ErrReferralCode,
	"account.ErrRegistrationClosed":  account.ErrRegistrationClosed,
	"account.ErrScope":               account.ErrScope,
	"account.ErrSecretTooNew":        account.ErrSecretTooNew,
	"account.ErrTierRequired":        account.ErrTierRequired,
	"billing.ErrBudgetExceeded":      billing.ErrBudgetExceeded,
	"billing.ErrInsufficientBalance": billing.ErrInsufficientBalance,
	"catalog.ErrOutOfStock":          catalog.ErrOutOfStock,
	"catalog.ErrProductNotFound":     catalog.ErrProductNotFound,
	"domain.ErrIdempotencyConflict":  domain.ErrIdempotencyConflict,
	"domain.ErrInvalid":              domain.ErrInvalid,
	"domain.ErrUnavailable":          domain.ErrUnavailable,
	"egress.ErrRefused":              egress.ErrRefused,
	"exit.ErrNotMet":                 exit.ErrNotMet,
	"replacement.ErrRefused":         replacement.ErrRefused,
	"procurement.ErrDecided":         procurement.ErrDecided,
	"procurement.ErrOrderNotFound":   procurement.ErrOrderNotFound,
	"recharge.ErrLimit":              recharge.ErrLimit,
	"recharge.ErrNoAddress":          recharge.ErrNoAddress,
	"recharge.ErrNotFound":           recharge.ErrNotFound,
	"recharge.ErrOff":                recharge.ErrOff,
	"session.ErrLimit":               session.ErrLimit,
	"session.ErrNotDynamic":          session.ErrNotDynamic,
	"session.ErrNotFound":            session.ErrNotFound,
	"session.ErrNotReady":            session.ErrNotReady,
	"session.ErrNotStatic":           session.ErrNotStatic,
	"session.ErrNotMetered":          session.ErrNotMetered,
	"session.ErrTopUpLimit":          session.ErrTopUpLimit,
	"session.ErrTopUpPrice":          session.ErrTopUpPrice,
	"session.ErrOver":                session.ErrOver,
	"webhook.ErrNoEndpoint":          webhook.ErrNoEndpoint,
	"webhook.ErrPending":             webhook.ErrPending,
	"webhook.ErrTest":                webhook.ErrTest,
	"webhook.ErrNotFound":            webhook.ErrNotFound,
	"webhook.ErrDisabled":            webhook.ErrDisabled,
	"worker.ErrDiffers":              worker.ErrDiffers,
	"worker.ErrExhausted":            worker.ErrExhausted,
	"worker.ErrExitLost":             worker.ErrExitLost,
	"worker.ErrLimit":                worker.ErrLimit,
	"worker.ErrNotFound":             worker.ErrNotFound,
	"worker.ErrParameter":            worker.ErrParameter,
}

// general lists the sentinels that are a special case of another one.
var general = map[string]string{
	"recharge.ErrNoAddress":  "domain.ErrUnavailable",
	"session.ErrNotDynamic":  "domain.ErrInvalid",
	"session.ErrNotStatic":   "domain.ErrInvalid",
	"session.ErrNotMetered":  "domain.ErrInvalid",
	"webhook.ErrNoEndpoint":  "domain.ErrInvalid",
	"webhook.ErrPending":     "domain.ErrInvalid",
	"webhook.ErrTest":        "domain.ErrInvalid",
	"account.ErrFirstKey":    "domain.ErrInvalid",
	"account.ErrTooManyKeys": "domain.ErrInvalid",
	"webhook.ErrDisabled":    "domain.ErrInvalid",
}

func TestNoTwoSentinelsAreEqual(t *testing.T) {
	for a, err := range sentinels {
		for b, other := range sentinels {
			if got, want := errors.Is(err, other), a == b || general[a] == b; got != want {
				t.Errorf("errors.Is(%s, %s) is %t", a, b, got)
			}
			reworded := err.Msgf("reworded").With("n", 1).After(1)
			if got, want := errors.Is(reworded, other), a == b || general[a] == b; got != want {
				t.Errorf("errors.Is(a reworded %s, %s) is %t", a, b, got)
			}
		}
	}
}

func TestMessagesNameNoPath(t *testing.T) {
	for name, err := range sentinels {
		if strings.Contains(err.Message, " /") {
			t.Errorf("%s depends on a route: %s", name, err.Message)
		}
	}
}

// TestSentinelsAreListed compares the table with the declarations in the source.
func TestSentinelsAreListed(t *testing.T) {
	var declared []string
	files := token.NewFileSet()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			group, ok := decl.(*ast.GenDecl)
			if !ok || group.Tok != token.VAR {
				continue
			}
			for _, spec := range group.Specs {
				v := spec.(*ast.ValueSpec)
				if strings.HasPrefix(v.Names[0].Name, "Err") && !isErrorsNew(v.Values[0]) {
					declared = append(declared, file.Name.Name+"."+v.Names[0].Name)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(declared)
	if listed := slices.Sorted(maps.Keys(sentinels)); !slices.Equal(declared, listed) {
		t.Errorf("declared %v\nlisted %v", declared, listed)
	}
}

// isErrorsNew reports whether an expression is a call of errors.New, whose
// results are never equal to one another.
func isErrorsNew(x ast.Expr) bool {
	call, ok := x.(*ast.CallExpr)
	if !ok {
		return false
	}
	name, ok := call.Fun.(*ast.SelectorExpr)
	return ok && name.Sel.Name == "New"
}
