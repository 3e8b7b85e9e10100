import { render } from 'preact'
import { useLayoutEffect, useState } from 'preact/hooks'
import { currentPath, useHashPath } from '#api/console/app/address.ts'
import { currentCredential, onCredential } from '#api/console/app/credential.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { Shell } from '#api/console/app/shell.ts'
import { SignIn } from '#api/console/app/sign-in.ts'
import { answerOtherTabs, askOtherTabs } from '#api/console/app/tabs.ts'
import { applyTheme, storedTheme } from '#api/console/app/theme.ts'
import { ToastRegion } from '#api/console/app/toasts.ts'

/** Addresses at which a credential is asked for, whether there is one or not. */
const doors = new Set<string | undefined>(['sign-in', 'open', 'login'])

/** Shows the sign-in page, or the pages of the credential. */
function App(): View {
  const [credential, setCredential] = useState(currentCredential)
  useLayoutEffect(() => onCredential(() => setCredential(currentCredential())), [])
  const [place] = useHashPath()
  return html`<div class="app">
    ${
      credential && !doors.has(place)
        ? // The key remounts the shell: another credential must not see what the page held before.
          renderComponent(Shell, { key: credential.key, credential })
        : renderComponent(SignIn, {})
    }
    ${renderComponent(ToastRegion, {})}
  </div>`
}

applyTheme(storedTheme())
answerOtherTabs()
if (!doors.has(currentPath()[0])) await askOtherTabs()
render(renderComponent(App, {}), document.querySelector('#console')!)
// From here on the page is the console's; see `boot.ts`.
delete document.documentElement.dataset.door
