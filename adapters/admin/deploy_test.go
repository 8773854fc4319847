package admin_test

import (
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

const root = "../../"

func text(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(root + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// composeFile is the part of compose.yaml that the tests read.
type composeFile struct {
	Services map[string]struct {
		Image       string
		Build       any
		Environment map[string]string
		Ports       []string
		Volumes     []string
		Healthcheck struct{ Test []string }
		DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
		Configs     []struct{ Source, Target string }
		ReadOnly    bool     `yaml:"read_only"`
		CapDrop     []string `yaml:"cap_drop"`
		Ulimits     struct{ Nofile int }
		Command     []string
		Networks    map[string]struct {
			Address string `yaml:"ipv4_address"`
		}
	}
	Networks map[string]struct {
		IPAM struct {
			Config []struct {
				Subnet string
				Range  string `yaml:"ip_range"`
			}
		}
	}
	Volumes map[string]any
	Configs map[string]struct{ Content string }
}

func compose(t *testing.T) composeFile {
	t.Helper()
	var c composeFile
	// A key beside a merged one overrides it.
	if err := yaml.UnmarshalWithOptions([]byte(text(t, "compose.yaml")), &c, yaml.AllowDuplicateMapKey()); err != nil {
		t.Fatal(err)
	}
	return c
}

var variable = regexp.MustCompile(`AGENTPROXY_[A-Z_]+`)

// TestVariablesExist checks that the deployment files set variables that exist.
func TestVariablesExist(t *testing.T) {
	known := map[string]bool{}
	for _, file := range []string{"adapters/configfile/config.go", "adapters/configfile/payments.go", "adapters/configfile/tls.go"} {
		for _, m := range regexp.MustCompile(`env:"(AGENTPROXY_[A-Z_]+)"`).FindAllStringSubmatch(text(t, file), -1) {
			known[m[1]] = true
		}
	}
	known["AGENTPROXY_CONFIG"] = true // names the file itself
	if len(known) < 15 {
		t.Fatalf("found only %d variables in the configuration", len(known))
	}
	for _, file := range []string{"compose.yaml", "Dockerfile", "deploy/kubernetes/agentproxy.env",
		"deploy/kubernetes/secret.example.yaml", "deploy/kubernetes/sellers/kustomization.yaml", "deploy/kubernetes/tls/kustomization.yaml",
		"deploy/compose/single.yaml", "deploy/systemd/agentproxy.env.example"} {
		for _, name := range variable.FindAllString(text(t, file), -1) {
			if !known[name] {
				t.Errorf("%s sets %s, which the program does not read", file, name)
			}
		}
	}
}

func TestReplicasShareWhatTheyMust(t *testing.T) {
	c := compose(t)
	one, two := c.Services["agentproxy-1"], c.Services["agentproxy-2"]
	for _, s := range []string{"agentproxy-1", "agentproxy-2"} {
		r := c.Services[s]
		e := r.Environment
		if r.Build == nil || r.DependsOn["postgres"].Condition != "service_healthy" ||
			r.DependsOn["migrate"].Condition != "service_completed_successfully" {
			t.Errorf("%s is not built here, or does not wait for its dependencies: %+v", s, r)
		}
		if !strings.HasPrefix(e["AGENTPROXY_DATABASE_URL"], "postgres://") || !strings.Contains(e["AGENTPROXY_DATABASE_URL"], "@postgres:5432/") {
			t.Errorf("%s: database %q", s, e["AGENTPROXY_DATABASE_URL"])
		}
		if !strings.HasPrefix(e["AGENTPROXY_SECRET"], "${AGENTPROXY_SECRET:?") {
			t.Errorf("%s: the secret is not required of the environment", s)
		}
		if e["AGENTPROXY_DEV"] != "false" || !r.ReadOnly || !slices.Contains(r.CapDrop, "ALL") {
			t.Errorf("%s runs with more than it needs", s)
		}
		for name, port := range map[string]string{"HTTP": "8080", "GATEWAY": "8081", "ADMIN": "8082"} {
			if addr := e["AGENTPROXY_"+name+"_ADDR"]; addr != "0.0.0.0:"+port {
				t.Errorf("%s: %s listens on %q", s, name, addr)
			}
		}
		if len(r.Ports) > 0 {
			t.Errorf("%s is published on %v, past the balancer", s, r.Ports)
		}
		if e["AGENTPROXY_PUBLIC_URL"] != "http://${PUBLIC_HOST:-127.0.0.1}:8080" ||
			e["AGENTPROXY_PUBLIC_GATEWAY"] != "${PUBLIC_HOST:-127.0.0.1}:8081" {
			t.Errorf("%s advertises %s and %s", s, e["AGENTPROXY_PUBLIC_URL"], e["AGENTPROXY_PUBLIC_GATEWAY"])
		}
	}
	for name, value := range one.Environment {
		if two.Environment[name] != value {
			t.Errorf("%s: %q and %q", name, value, two.Environment[name])
		}
	}
}

func TestTheBalancerLeadsToBothReplicas(t *testing.T) {
	c := compose(t)
	b := c.Services["balancer"]
	if want := []string{"${BIND_ADDR:-127.0.0.1}:8080:8080", "${BIND_ADDR:-127.0.0.1}:8081:8081"}; !slices.Equal(b.Ports, want) {
		t.Errorf("it is published on %v, want %v", b.Ports, want)
	}
	config := text(t, "deploy/haproxy/haproxy.cfg")
	for _, replica := range []string{"agentproxy-1", "agentproxy-2"} {
		for _, port := range []string{"8080", "8081 send-proxy-v2"} {
			if line := "    server " + replica + " " + replica + ":" + port + "\n"; !strings.Contains(config, line) {
				t.Errorf("no %q", line)
			}
		}
	}
	if c.Services["agentproxy-1"].Environment["AGENTPROXY_PROXY_PROTOCOL"] != "true" {
		t.Error("the replicas do not take the header of the balancer")
	}
	hosts := strings.Split(c.Services["agentproxy-1"].Environment["AGENTPROXY_ADMIN_HOSTS"], ",")
	name := regexp.MustCompile(`uri /readyz hdr Host (\S+)`).FindStringSubmatch(config)
	if name == nil || !slices.Contains(hosts, name[1]) || !strings.Contains(config, "port 8082 check") {
		t.Errorf("it asks %v, the replicas answer to %v", name, hosts)
	}
	trusted := c.Services["agentproxy-1"].Environment["AGENTPROXY_TRUSTED_PROXIES"]
	if addr := b.Networks["default"].Address; addr == "" || trusted != addr+"/32" {
		t.Errorf("the replicas trust %q, the balancer has %q", trusted, addr)
	}
	if len(c.Networks["default"].IPAM.Config) != 1 {
		t.Fatalf("%+v", c.Networks)
	}
	// Others get none of the addresses below the range, so that none has the balancer's before it.
	of := c.Networks["default"].IPAM.Config[0]
	subnet, others, addr := netip.MustParsePrefix(of.Subnet), netip.MustParsePrefix(of.Range), netip.MustParseAddr(b.Networks["default"].Address)
	if !subnet.Contains(addr) || others.Contains(addr) || addr == subnet.Addr().Next() {
		t.Errorf("the balancer has %s of %s, others have addresses of %s", addr, subnet, others)
	}
	if !strings.Contains(config, "\n    http-request set-header X-Forwarded-For %[src]\n") || strings.Contains(config, "\n    option forwardfor") {
		t.Error("what clients write into X-Forwarded-For is passed on")
	}
}

func TestPostgresIsWaitedForAndKept(t *testing.T) {
	c := compose(t)
	p := c.Services["postgres"]
	if !strings.HasPrefix(p.Image, "postgres:16.") || !strings.Contains(strings.Join(p.Healthcheck.Test, " "), "pg_isready") {
		t.Errorf("%+v", p)
	}
	if _, ok := c.Volumes["postgres"]; !ok || len(p.Volumes) != 1 || !strings.HasPrefix(p.Volumes[0], "postgres:/var/lib/postgresql/data") {
		t.Errorf("what is stored is in %v", p.Volumes)
	}
	if !strings.HasPrefix(p.Environment["POSTGRES_PASSWORD"], "${POSTGRES_PASSWORD:?") {
		t.Error("the password of the database is not required of the environment")
	}
	if len(p.Ports) > 0 {
		t.Errorf("the database is published on %v", p.Ports)
	}
	url := c.Services["agentproxy-1"].Environment["AGENTPROXY_DATABASE_URL"]
	if !strings.Contains(url, "//"+p.Environment["POSTGRES_USER"]+":"+p.Environment["POSTGRES_PASSWORD"]+"@") ||
		!strings.Contains(url, "/"+p.Environment["POSTGRES_DB"]+"?") {
		t.Errorf("the replicas connect with %q", url)
	}
}

// What is released is built with flags that no other test uses.
func TestTheImagesBuildIsChecked(t *testing.T) {
	build := regexp.MustCompile(`go build (.*) \\\n +-o /agentproxy (\./cmd/agentproxy)\n`).FindStringSubmatch(text(t, "Dockerfile"))
	if build == nil {
		t.Fatal("the Dockerfile builds no program")
	}
	flags := strings.Replace(build[1], " -X agentproxy/cmd/internal/version.set=$VERSION", "", 1)
	if want := "go build " + flags + " -o /dev/null " + build[2] + "\n"; !strings.Contains(text(t, ".ci/campaign"), want) {
		t.Errorf(".ci/campaign has no %q", want)
	}
}

func TestPrometheusScrapesAndAlerts(t *testing.T) {
	c := compose(t)
	p := c.Services["prometheus"]
	if len(p.Configs) != 1 || p.Configs[0].Target != "/etc/prometheus/prometheus.yml" {
		t.Fatalf("%+v", p.Configs)
	}
	type static []struct{ Targets []string }
	var conf struct {
		Alerting struct {
			Alertmanagers []struct {
				StaticConfigs static `yaml:"static_configs"`
			}
		}
		ScrapeConfigs []struct {
			Job           string `yaml:"job_name"`
			StaticConfigs static `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	if err := yaml.Unmarshal([]byte(c.Configs[p.Configs[0].Source].Content), &conf); err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, s := range conf.ScrapeConfigs {
		got[s.Job] = s.StaticConfigs[0].Targets
	}
	for _, m := range conf.Alerting.Alertmanagers {
		got["alerts"] = m.StaticConfigs[0].Targets
	}
	// The jobs are labels that the alerts ask for.
	for job, want := range map[string]string{"agentproxy": "agentproxy-1:8082 agentproxy-2:8082", "alerts": "alertmanager:9093",
		"postgres": "postgres-exporter:9187", "postgres-disk": "postgres-disk:9100"} {
		if strings.Join(got[job], " ") != want {
			t.Errorf("%s: %v, want %s", job, got[job], want)
		}
		for _, target := range got[job] {
			if host, _, _ := strings.Cut(target, ":"); c.Services[host].Image == "" && c.Services[host].Build == nil {
				t.Errorf("there is no %s", target)
			}
		}
	}
	if m := c.Services["alertmanager"]; len(m.Configs) != 1 || c.Configs[m.Configs[0].Source].Content == "" {
		t.Errorf("the Alertmanager has no configuration: %+v", m.Configs)
	}
	if e := c.Services["postgres-exporter"]; !slices.Contains(e.Command, "--collector.database_wraparound") || e.Environment["DATA_SOURCE_PASS"] !=
		c.Services["postgres"].Environment["POSTGRES_PASSWORD"] {
		t.Errorf("the exporter of PostgreSQL: %+v", e)
	}
	if d, of := c.Services["postgres-disk"], c.Services["postgres"]; len(d.Volumes) != 1 || d.Volumes[0] != of.Volumes[0]+":ro" {
		t.Errorf("the disk that is watched: %v, PostgreSQL's: %v", d.Volumes, of.Volumes)
	}
}

// HAProxy takes two descriptors a connection, and does not start without.
func TestTheBalancerMayOpenItsConnections(t *testing.T) {
	most := regexp.MustCompile(`\n    maxconn (\d+)\n`).FindStringSubmatch(text(t, "deploy/haproxy/haproxy.cfg"))
	if most == nil {
		t.Fatal("it bounds no connections")
	}
	if n, err := strconv.Atoi(most[1]); err != nil || compose(t).Services["balancer"].Ulimits.Nofile < 2*n+100 {
		t.Errorf("%d connections, %d descriptors, %v", n, compose(t).Services["balancer"].Ulimits.Nofile, err)
	}
}

// What takes an Idempotency-Key, by the client, is what the balancer repeats with one.
func TestTheBalancerRepeatsWhatTakesAKey(t *testing.T) {
	rule := regexp.MustCompile(`acl takes_key path_reg (\S+)\n`).FindStringSubmatch(text(t, "deploy/haproxy/haproxy.cfg"))
	if rule == nil {
		t.Fatal("the balancer has no paths that take a key")
	}
	takes, keyed, n := regexp.MustCompile(rule[1]), map[string]bool{}, 0
	for _, line := range strings.Split(text(t, "adapters/apiclient/operations.go"), "\n") {
		if m := regexp.MustCompile(`method: "POST", path: "([^"]+)"`).FindStringSubmatch(line); m != nil {
			keyed[m[1]] = keyed[m[1]] || strings.Contains(line, "key: keyOr(")
		}
	}
	for path, key := range keyed {
		if takes.MatchString("/v1"+path) != key {
			t.Errorf("%s takes a key: %v", path, key)
		}
		if key {
			n++
		}
	}
	if n < 6 || len(keyed) < 2*n {
		t.Errorf("%d of %d paths take a key", n, len(keyed))
	}
}

// A database that is away ends every start, and the default limit gives up after five.
func TestTheUnitIsStartedAgain(t *testing.T) {
	if unit, _, _ := strings.Cut(text(t, "deploy/systemd/agentproxy.service"), "[Service]"); !strings.Contains(unit, "\nStartLimitIntervalSec=0\n") {
		t.Error("systemd gives up after a few starts")
	}
}

// Off loopback the metrics need a credential, which the shipped Prometheus does not have.
func TestPrometheusMayRead(t *testing.T) {
	if open := compose(t).Services["agentproxy-1"].Environment["AGENTPROXY_METRICS_OPEN"]; open != "true" {
		t.Errorf("in compose.yaml metrics are open: %q", open)
	}
	if env := text(t, "deploy/kubernetes/agentproxy.env"); !strings.Contains(env, "\nAGENTPROXY_METRICS_OPEN=true\n") ||
		!strings.Contains(text(t, "deploy/kubernetes/policies.yaml"), "kubernetes.io/metadata.name: monitoring") {
		t.Error("in Kubernetes metrics need a credential, or more than Prometheus reaches them")
	}
}

func TestImage(t *testing.T) {
	file := text(t, "Dockerfile")
	stages := strings.Split(file, "\nFROM ")
	if len(stages) != 3 {
		t.Fatalf("%d stages", len(stages)-1)
	}
	build, final := stages[1], stages[2]
	module := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(text(t, "go.mod"))[1]
	if !strings.HasPrefix(build, "golang:"+module+".") {
		t.Errorf("built by %.20q, the module wants Go %s", build, module)
	}
	if !strings.Contains(build, "CGO_ENABLED=1") || !strings.Contains(build, "./cmd/agentproxy") {
		t.Error("the program is not built, or without SQLite")
	}
	// Both stages have the C library of the same release.
	if !regexp.MustCompile(`^golang:\d+\.\d+\.\d+-trixie `).MatchString(build) || !regexp.MustCompile(`^debian:13\.\d+-slim\n`).MatchString(final) {
		t.Errorf("built on %.20q, runs on %.20q: want full versions of Debian 13 (trixie)", build, final)
	}
	user := strings.Index(final, "\nUSER 10001")
	if user < 0 || user > strings.Index(final, "\nENTRYPOINT [") || strings.Count(final, "\nUSER ") != 1 {
		t.Error("runs as root, or not at all")
	}
	for _, want := range []string{"\nEXPOSE 8080 8081 8082\n", "\nHEALTHCHECK ", "/healthz", "ca-certificates", "--from=build"} {
		if !strings.Contains(final, want) {
			t.Errorf("the image has no %q", want)
		}
	}
}

// TestNothingSecretIsSentToTheBuild reads .dockerignore, which lists what is sent.
func TestNothingSecretIsSentToTheBuild(t *testing.T) {
	lines := strings.Fields(text(t, ".dockerignore"))
	if lines[0] != "*" {
		t.Error("everything is sent that is not listed")
	}
	for _, l := range []string{"**/*.secret", "**/*.db*", "**/.env*"} {
		if !slices.Contains(lines, l) {
			t.Errorf("%s is not kept out", l)
		}
	}
	var let []string
	for _, l := range lines {
		if in, ok := strings.CutPrefix(l, "!"); ok {
			let = append(let, in)
		}
	}
	// The sources of the program.
	for _, dir := range []string{"go.mod", "go.sum", "adapters", "app", "cmd", "domain", "ports"} {
		if !slices.Contains(let, dir) {
			t.Errorf("%s is not sent", dir)
		}
	}
}

// byTag are the images that are built anew under their tag when what they are made of has a security fix. Those of
// other publishers are the same for ever, and named by their digest.
var byTag = []string{"agentproxy", "postgres", "haproxy"}

func TestImagesAreNamedByDigest(t *testing.T) {
	digest := regexp.MustCompile(`^[^@]+:[^@]+@sha256:[0-9a-f]{64}$`)
	for name, s := range compose(t).Services {
		image, _, _ := strings.Cut(s.Image, ":")
		if !digest.MatchString(s.Image) && !slices.Contains(byTag, image) {
			t.Errorf("%s: the image %s has no digest", name, s.Image)
		}
	}
}
