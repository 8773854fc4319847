package exitfacts

import (
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/oschwald/maxminddb-golang/v2"

	"agentproxy/domain/country"
	"agentproxy/domain/exit"
)

// maxDatabase is the greatest size of a database in bytes. It is kept in memory: of a mapped file that is
// overwritten in place the process would read the new bytes with the old index, or be killed.
const maxDatabase = 1 << 30

// Database is a MaxMind database with the fields of GeoLite2 City or ASN.
type Database struct{ reader *maxminddb.Reader }

// OpenDatabase reads a database.
func OpenDatabase(name string) (*Database, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxDatabase+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxDatabase {
		return nil, fmt.Errorf("is larger than %d MiB", maxDatabase>>20)
	}
	reader, err := maxminddb.OpenBytes(data)
	if err != nil {
		return nil, fmt.Errorf("is not a MaxMind database: %w", err)
	}
	return &Database{reader}, nil
}

// Built returns when the database was made.
func (d *Database) Built() time.Time { return d.reader.Metadata.BuildTime().UTC() }

// Has returns the facts that the database can have, by its type. One of a type that is not known may have any.
func (d *Database) Has() exit.Fields {
	kind := strings.ToLower(d.reader.Metadata.DatabaseType)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(kind, w) })
	}
	place, network := has("city", "country", "location", "enterprise"), has("asn", "isp", "enterprise")
	return exit.Fields{Country: place || !network, ASN: network || !place}
}

// name is a name of a place, of which only the English one is read.
type name struct {
	Names struct {
		English string `maxminddb:"en"`
	} `maxminddb:"names"`
}

// record has the fields of GeoLite2 City and of GeoLite2 ASN that are facts.
type record struct {
	Country struct {
		Code string `maxminddb:"iso_code"`
	} `maxminddb:"country"`
	Subdivisions []name `maxminddb:"subdivisions"`
	City         name   `maxminddb:"city"`
	Location     struct {
		Timezone string `maxminddb:"time_zone"`
	} `maxminddb:"location"`
	ASN    uint   `maxminddb:"autonomous_system_number"`
	ASName string `maxminddb:"autonomous_system_organization"`
}

// Lookup returns what the database has about an address: nothing if it has no entry or its entry cannot be read.
func (d *Database) Lookup(addr netip.Addr) exit.Known {
	var r record
	if err := d.reader.Lookup(addr).Decode(&r); err != nil {
		return exit.Known{}
	}
	k := exit.Known{City: r.City.Names.English, Timezone: r.Location.Timezone, ASN: uint32(r.ASN), ASName: r.ASName}
	if country.Known(r.Country.Code) {
		k.Country = r.Country.Code
	}
	if len(r.Subdivisions) > 0 {
		k.Region = r.Subdivisions[0].Names.English
	}
	return k
}
