import { useLayoutEffect, useState } from 'preact/hooks'
import { currentCredential, onCredential } from '#api/console/app/credential.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { ToastRegion } from '#api/console/app/toasts.ts'
import { Shell } from '#api/console/app/shell.ts'
import { SignIn } from '#api/console/app/sign-in.ts'

/** The console: the sign-in page, or the pages of the credential. */
export function App(): View {
  const [activeCredential, setActiveCredential] = useState(currentCredential)
  useLayoutEffect(() => onCredential(() => setActiveCredential(currentCredential())), [])
  return html`<div class="app">
    ${
      activeCredential
        ? // Another key is another vault: nothing of the one before may stay on the page.
          renderComponent(Shell, { key: activeCredential.key, credential: activeCredential })
        : renderComponent(SignIn, {})
    }
    ${renderComponent(ToastRegion, {})}
  </div>`
}
