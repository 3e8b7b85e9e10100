import { useEffect, useState } from 'preact/hooks'
import { addressOf, useAddress } from '#api/console/app/address.ts'
import { hold, masked, type Credential } from '#api/console/app/credential.ts'
import { html, part, type View } from '#api/console/app/html.ts'
import { pageAt, placeAt, placesOf, type Place } from '#api/console/app/places.ts'
import { ThemeSwitch } from '#api/console/app/theme-switch.ts'

/** The frame around every page: where one is, where one can go, and the way out. */
export function Shell({ credential }: { credential: Credential }): View {
  const address = useAddress()
  const [open, setOpen] = useState(false)
  useEffect(() => setOpen(false), [address])
  const places = placesOf(credential, address)
  const current = placeAt(places, address)
  return html`<div class="shell">
    <a
      class="skip"
      href="#main"
      onClick=${(event: Event) => {
        event.preventDefault()
        document.querySelector<HTMLElement>('h1')?.focus()
      }}
      >Skip to content</a
    >
    <header class="bar">
      <button
        type="button"
        class="button button-plain bar-menu"
        aria-expanded=${open}
        aria-controls="places"
        onClick=${() => setOpen(!open)}
      >
        Menu
      </button>
      <a class="brand" href=${addressOf()}>Memory Vault</a>
      <span
        class="bar-key"
        title=${credential.kind === 'admin' ? 'Admin credential' : 'Memory Key'}
      >
        <span class="unseen">Signed in with</span> <code>${masked(credential)}</code>
      </span>
      <button type="button" class="button button-plain" onClick=${() => hold(null)}>
        Sign out
      </button>
    </header>
    <div class="columns">
      <div class=${open ? 'side side-open' : 'side'}>
        <nav id="places" class="places" aria-label="Pages">
          ${places.map(group => placesList(group.name, group.places, current))}
        </nav>
        <footer class="side-foot">
          <a href="/docs">API reference</a>
          ${part(ThemeSwitch, {})}
        </footer>
      </div>
      <main id="main" class="main">${pageAt(credential, address)}</main>
    </div>
  </div>`
}

const placesList = (name: string, places: readonly Place[], current: Place | undefined): View =>
  html`<div class="places-group" key=${name}>
    <p class="places-name">${name}</p>
    <ul>
      ${places.map(
        place =>
          html`<li key=${place.path.join('/')}>
            <a
              href=${addressOf(...place.path)}
              aria-current=${place === current ? 'page' : undefined}
            >
              ${place.name}
            </a>
          </li>`,
      )}
    </ul>
  </div>`
