import { useLayoutEffect, useState } from 'preact/hooks'
import { currentCredential, onCredential } from '#api/console/app/credential.ts'
import { useHashPath } from '#api/console/app/hash-route.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { lazyPage } from '#api/console/app/lazy-page.ts'
import { ToastRegion } from '#api/console/app/toasts.ts'
import { Shell } from '#api/console/app/shell.ts'
import { SignIn } from '#api/console/app/sign-in.ts'

const Receipt = lazyPage(
  async () => (await import('#api/console/app/vault/account/receipt.ts')).Receipt,
)

/** The console: the sign-in page, the receipt of an erasure, or the pages of the credential. */
export function App(): View {
  const [activeCredential, setActiveCredential] = useState(currentCredential)
  useLayoutEffect(() => onCredential(() => setActiveCredential(currentCredential())), [])
  const [place, id] = useHashPath()
  return html`<div class="app">
    ${
      place === 'receipt' && !activeCredential
        ? renderComponent(Receipt, { id })
        : activeCredential
          ? // Another key is another vault: nothing of the one before may stay on the page.
            renderComponent(Shell, { key: activeCredential.key, credential: activeCredential })
          : renderComponent(SignIn, {})
    }
    ${renderComponent(ToastRegion, {})}
  </div>`
}
