package site

import "example.org/registry/events"

// listWords name a list.
type listWords struct{ Path, Title, About, Lead, Find, Nobody string }

func wordsOf(l events.List) listWords {
	switch l {
	case events.Servers:
		return listWords{"/servers", "Serwery oszustów", "Lista zgłoszonych fałszywych serwerów.",
			"Serwery zgłoszone jako oszustwo: zweryfikowane i te z listy ryzyka, których zgłoszeń jeszcze nie zweryfikowano.",
			"Nazwa serwera, identyfikator lub słowo z opisu", "Żaden serwer nie pasuje"}
	case events.Legit:
		return listWords{"/legit", "Osoby zaufane", "Lista osób zaufanych.",
			"Osoby, które zweryfikowano jako godne zaufania. Oszuści chętnie się pod nie podszywają: zawsze porównaj identyfikator konta.",
			"Nick, identyfikator lub słowo z opisu", "Nikt nie pasuje"}
	default:
		return listWords{"/scammers", "Oszuści", "Lista zgłoszonych oszustów.",
			"Osoby zgłoszone jako oszuści: zweryfikowane i te z listy ryzyka, których zgłoszeń jeszcze nie zweryfikowano.",
			"Nick, identyfikator lub słowo z opisu", "Nikt nie pasuje"}
	}
}
