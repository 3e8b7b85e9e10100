import { useLayoutEffect, useState } from 'preact/hooks'
import { credential, onCredential } from '#api/console/app/credential.ts'
import { html, part, type View } from '#api/console/app/html.ts'
import { SaidRegion } from '#api/console/app/said.ts'
import { Shell } from '#api/console/app/shell.ts'
import { SignIn } from '#api/console/app/sign-in.ts'

/** The whole console: asks for a credential, then shows what it opens. */
export function App(): View {
  const [held, setHeld] = useState(credential)
  useLayoutEffect(() => onCredential(() => setHeld(credential())), [])
  return html`<div class="app">
    ${
      held
        ? // Another key is another vault: nothing of the one before may stay on the page.
          part(Shell, { key: held.key, credential: held })
        : part(SignIn, {})
    }
    ${part(SaidRegion, {})}
  </div>`
}
