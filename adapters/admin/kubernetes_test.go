package admin_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

var update = flag.Bool("update", false, "rewrite the alerts of deploy/kubernetes from those of deploy/prometheus")

// The alerts of the operator of Prometheus are those of the file.
func TestThePrometheusRuleHasTheAlerts(t *testing.T) {
	const file = "deploy/kubernetes/monitoring/prometheusrule.yaml"
	_, groups, ok := strings.Cut(text(t, "deploy/prometheus/alerts.yml"), "\ngroups:\n")
	if !ok {
		t.Fatal("there are no groups")
	}
	want := `# Written from deploy/prometheus/alerts.yml by make generate.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: agentproxy
  labels:
    app.kubernetes.io/name: agentproxy
spec:
  groups:
  ` + strings.ReplaceAll(strings.TrimSuffix(groups, "\n"), "\n", "\n  ") + "\n"
	if *update {
		if err := os.WriteFile(root+file, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if text(t, file) != want {
		t.Errorf("%s differs from the alerts: run make generate", file)
	}
	var rule struct{ Spec alerting }
	if err := yaml.Unmarshal([]byte(want), &rule); err != nil || len(rule.Spec.Groups) < 2 || len(rule.Spec.Groups[0].Rules) < 20 {
		t.Errorf("it has %d groups, %v", len(rule.Spec.Groups), err)
	}
}

// service is what the manifests of Services have that others name.
type service struct {
	Metadata struct {
		Name   string
		Labels map[string]string
	}
	Spec struct {
		Ports []struct{ Name string }
	}
}

// named returns a Service of the manifests.
func named(t *testing.T, name string) (s service) {
	t.Helper()
	for _, part := range strings.Split(text(t, "deploy/kubernetes/services.yaml"), "\n---\n") {
		s = service{}
		if err := yaml.Unmarshal([]byte(part), &s); err != nil {
			t.Fatal(err)
		}
		if s.Metadata.Name == name {
			return s
		}
	}
	t.Fatalf("there is no Service %s", name)
	return s
}

// The job is the value of a label, and the alerts ask for agentproxy.
func TestTheServiceMonitorScrapesTheJobOfTheAlerts(t *testing.T) {
	var m struct {
		Spec struct {
			JobLabel string `yaml:"jobLabel"`
			Selector struct {
				Labels map[string]string `yaml:"matchLabels"`
			}
			Endpoints []struct{ Port, Path string }
		}
	}
	if err := yaml.Unmarshal([]byte(text(t, "deploy/kubernetes/monitoring/servicemonitor.yaml")), &m); err != nil {
		t.Fatal(err)
	}
	s := named(t, "agentproxy-admin")
	for label, value := range m.Spec.Selector.Labels {
		if s.Metadata.Labels[label] != value {
			t.Errorf("it selects %s=%s, the Service has %v", label, value, s.Metadata.Labels)
		}
	}
	if len(m.Spec.Selector.Labels) == 0 || s.Metadata.Labels[m.Spec.JobLabel] != "agentproxy" || len(m.Spec.Endpoints) != 1 ||
		m.Spec.Endpoints[0].Port != s.Spec.Ports[0].Name || m.Spec.Endpoints[0].Path != "/metrics" {
		t.Errorf("%+v of %+v", m.Spec, s)
	}
	if strings.Contains(text(t, "deploy/kubernetes/deployment.yaml"), "prometheus.io/scrape") {
		t.Error("an annotation lets Prometheus scrape by another job too")
	}
}

func TestTheIngressLeadsToTheAPI(t *testing.T) {
	var in struct {
		Spec struct {
			TLS   []struct{ Hosts []string }
			Rules []struct {
				Host string
				HTTP struct {
					Paths []struct {
						Backend struct {
							Service struct {
								Name string
								Port struct{ Name string }
							}
						}
					}
				}
			}
		}
	}
	if err := yaml.Unmarshal([]byte(text(t, "deploy/kubernetes/ingress.example.yaml")), &in); err != nil {
		t.Fatal(err)
	}
	rule := in.Spec.Rules[0]
	to := rule.HTTP.Paths[0].Backend.Service
	if s := named(t, to.Name); to.Port.Name != "api" || s.Spec.Ports[0].Name != to.Port.Name {
		t.Errorf("%+v of %+v", to, s)
	}
	if in.Spec.TLS[0].Hosts[0] != rule.Host ||
		!strings.Contains(text(t, "deploy/kubernetes/agentproxy.env"), "AGENTPROXY_PUBLIC_URL=https://"+rule.Host+"\n") {
		t.Errorf("TLS is of %v, the rule of %s", in.Spec.TLS, rule.Host)
	}
}

// A failover of the database takes no pod out of its Service: 40 seconds outlast one of Patroni.
func TestPodsStayWhileTheDatabaseIsAway(t *testing.T) {
	var d struct {
		Spec struct {
			Template struct {
				Spec struct {
					Containers []struct {
						ReadinessProbe struct {
							PeriodSeconds    int `yaml:"periodSeconds"`
							FailureThreshold int `yaml:"failureThreshold"`
						} `yaml:"readinessProbe"`
					}
				}
			}
		}
	}
	first, _, _ := strings.Cut(text(t, "deploy/kubernetes/deployment.yaml"), "\n---\n")
	if err := yaml.Unmarshal([]byte(first), &d); err != nil {
		t.Fatal(err)
	}
	for _, c := range d.Spec.Template.Spec.Containers {
		if p := c.ReadinessProbe; p.PeriodSeconds*p.FailureThreshold < 40 {
			t.Errorf("a pod leaves after %d failures, one in %d seconds", p.FailureThreshold, p.PeriodSeconds)
		}
	}
}
