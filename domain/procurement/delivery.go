package procurement

import "agentproxy/domain/session"

// Exits returns the exits of a delivery to a session of a type. A dynamic session at
// an upstream has one, of unknown address.
func (d Delivery) Exits(of session.Type) []session.Exit {
	if of == session.Dynamic && len(d.IPs) == 0 {
		return []session.Exit{{}}
	}
	exits := make([]session.Exit, len(d.IPs))
	for i, ip := range d.IPs {
		exits[i].IP = ip.Addr
	}
	return exits
}

// Refs returns the provider's ids of a list.
func Refs(list []Delivery) []string {
	var refs []string
	for _, d := range list {
		refs = append(refs, d.Ref)
	}
	return refs
}
