import { useLayoutEffect, useState } from 'preact/hooks'
import { clientWith, UserError } from '#api/console/app/api-call.ts'
import {
  currentCredential,
  setCredential,
  signOutReason,
  type Credential,
} from '#api/console/app/credential.ts'
import { LinkQuestion, LoginChoices, loginName } from '#api/console/app/login.ts'
import { doorWords } from '#api/console/app/door-words.ts'
import { hrefTo, replaceAddress, useHashPath } from '#api/console/app/address.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { form, textField } from '#api/console/app/parts/fields.ts'
import { mark } from '#api/console/app/parts/icon.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { ThemeSwitch } from '#api/console/app/theme.ts'
import { VaultError } from '#api/client/client.ts'

/** Asks for a Memory Key or an admin credential, and verifies it. */
export function SignIn(): View {
  // The form was there before the console, and may have been filled in and sent.
  const [key, setKey] = useState(() => doorInput()?.value ?? '')
  useLayoutEffect(() => {
    if (document.documentElement.dataset.door === 'asked') doorInput()?.form?.requestSubmit()
  }, [])
  const reason = signOutReason()
  const provider = loginName()
  const [place, secret] = useHashPath()
  const [link] = useState(place === 'open' ? secret : undefined)
  const enter = (credential: Credential): void => {
    setCredential(credential)
    if (place === 'sign-in' || place === 'open') replaceAddress()
  }
  const hasLoggedIn = provider !== null && place === 'login'
  return html`<div class="door">
    <main class="door-card">
      ${mark()}
      ${page({
        title: 'Memory Vault',
        description: doorWords.description,
        children:
          link !== undefined && place === 'open'
            ? renderComponent(LinkQuestion, { secret: link, verify: verifyKey, enter })
            : hasLoggedIn
              ? renderComponent(LoginChoices, { verify: verifyKey })
              : form({
                  class: 'stack',
                  verb: 'Open',
                  kind: 'main',
                  act: async () => enter(await verifyKey(key.trim())),
                  children: [
                    reason && html`<p class="notice stack-tight">${reason}</p>`,
                    textField({
                      label: 'Key',
                      type: 'password',
                      value: key,
                      onValue: setKey,
                      required: true,
                      autocomplete: 'off',
                      placeholder: 'mk_…',
                      hint: doorWords.hint,
                    }),
                  ],
                }),
      })}
      ${
        provider !== null &&
        !hasLoggedIn &&
        html`<p class="door-login">
          <a class="button" href="/console/login">Sign in with ${provider}</a>
        </p>`
      }
    </main>
    <footer class="door-foot chips">
      ${currentCredential() && html`<a href=${hrefTo()}>Go on with the key of this tab</a>`}
      <a href="/docs">API reference</a>
      ${renderComponent(ThemeSwitch, {})}
    </footer>
  </div>`
}

const doorInput = (): HTMLInputElement | null =>
  document.querySelector<HTMLInputElement>('.door form input')

/** @throws UserError when the service rejects the key. */
async function verifyKey(key: string): Promise<Credential> {
  // Header values are Latin-1; keys are ASCII.
  if (!/^[\x21-\x7e]+$/.test(key)) throw new UserError('This is not a key')
  const client = clientWith({ key })
  const none = { owner: false, member: false, operator: false, reviewer: false }
  try {
    if (key.startsWith('mk_') && !key.startsWith('mk_admin')) {
      const query = { limit: 1 }
      // Whoever has any key reads its operations, also while the store of memories is out of reach.
      const [owner, isMember] = await Promise.all([
        succeeds(client.call('GET /v1/keys', { query })),
        succeeds(client.call('GET /v1/shares', { query })),
        client.call('GET /v1/operations', { query }),
      ])
      return { ...none, key, kind: 'vault', owner, member: !owner && isMember }
    }
    const { orgs } = await client.call('GET /v1/orgs')
    if (orgs[0]?.access === 'reviewer') return { ...none, key, kind: 'admin', reviewer: true }
  } catch (error) {
    if (error instanceof VaultError && error.status === 401) {
      throw new UserError('No vault and no team opens with this key', { cause: error })
    }
    throw error
  }
  const operator = await succeeds(client.call('GET /v1/operator/usage', { query: { days: 1 } }))
  return { ...none, key, kind: 'admin', operator }
}

const succeeds = (request: Promise<unknown>): Promise<boolean> =>
  request.then(
    () => true,
    () => false,
  )
