package catalog_test

import (
	"fmt"

	"agentproxy/domain"
	"agentproxy/domain/catalog"
	"agentproxy/domain/session"
)

// An account that is logged in needs an exit that stays; a crawler needs many.
func ExampleRecommend() {
	products := []catalog.Product{
		{No: "dyn-1", Type: session.Dynamic, Price: domain.MustMoney("3.50"), Countries: []string{"DE", "US"},
			MinBytes: 1_000_000_000, MaxBytes: 100_000_000_000, Available: true},
		{No: "isp-1", Type: session.Static, Durations: []catalog.Duration{{Days: 30, Price: domain.MustMoney("2.10")}},
			Countries: []string{"US"}, MinQuantity: 1, MaxQuantity: 100, Available: true},
	}
	for _, use := range []catalog.UseCase{catalog.AccountManagement, catalog.WebScraping} {
		list, _ := catalog.Recommend(products, catalog.Criteria{UseCase: use})
		fmt.Println(use, list[0].Product.No, list[0].EstimatedCost, list[0].Reasons[0])
	}
	list, _ := catalog.Recommend(products, catalog.Criteria{TargetRegion: "de"})
	fmt.Println(len(list), list[0].Product.No)
	// Output:
	// account_management isp-1 2.1 exits that stay suit account management
	// web_scraping dyn-1 3.5 rotating exits suit web scraping
	// 1 dyn-1
}

// A country that is not sold is answered with those it may be a mistake for.
func ExampleNearest() {
	fmt.Println(catalog.Nearest("UK", []string{"BR", "DE", "GB", "US"})[0])
	// Output: GB
}
