import { useState } from 'preact/hooks'
import { useDoing } from '#api/console/app/asked.ts'
import { callWith, Told } from '#api/console/app/call.ts'
import { hold, reasonForLeaving, type Credential } from '#api/console/app/credential.ts'
import { html, part, type View } from '#api/console/app/html.ts'
import { onSubmit, textField } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { faultNote } from '#api/console/app/parts/states.ts'
import { ThemeSwitch } from '#api/console/app/theme-switch.ts'
import { VaultError } from '#api/client/client.ts'

/** Asks for a Memory Key or an admin credential, and tries it. */
export function SignIn(): View {
  const [key, setKey] = useState('')
  const doing = useDoing()
  const reason = reasonForLeaving()
  return html`<div class="door">
    <main class="door-card">
      ${page({
        title: 'Memory Vault',
        words:
          'Look into a vault with its Memory Key, or look after a team with an admin credential.',
        children: html`<form
          class="stack"
          onSubmit=${onSubmit(() => doing.run(async () => hold(await tried(key.trim()))))}
        >
          ${reason && html`<p class="notice">${reason}</p>`}
          ${textField({
            label: 'Key',
            type: 'password',
            value: key,
            onValue: setKey,
            required: true,
            autocomplete: 'off',
            placeholder: 'mk_…',
            hint: 'Kept in this tab until you close it or sign out. It is sent to this service alone.',
          })}
          ${faultNote(doing.fault)}
          <button class="button button-main" disabled=${doing.busy}>
            ${doing.busy ? 'Looking …' : 'Open'}
          </button>
        </form>`,
      })}
    </main>
    <footer class="door-foot">
      <a href="/docs">API reference</a>
      ${part(ThemeSwitch, {})}
    </footer>
  </div>`
}

/** @throws Told when the key opens nothing. */
async function tried(key: string): Promise<Credential> {
  // What is sent in a header is Latin-1, and a key is far less.
  if (!/^[\x21-\x7e]+$/.test(key)) throw new Told('This is not a key')
  const vault = key.startsWith('mk_') && !key.startsWith('mk_admin')
  try {
    if (vault) {
      await callWith(key, 'GET /v1/memory/stats')
      const owner = await opens(callWith(key, 'GET /v1/keys', { query: { limit: 1 } }))
      return { key, kind: 'vault', owner, operator: false }
    }
    await callWith(key, 'GET /v1/orgs')
  } catch (error) {
    if (error instanceof VaultError && error.status === 401) {
      throw new Told('No vault and no team opens with this key', { cause: error })
    }
    throw error
  }
  const operator = await opens(callWith(key, 'GET /v1/operator/usage', { query: { days: 1 } }))
  return { key, kind: 'admin', owner: false, operator }
}

const opens = (asked: Promise<unknown>): Promise<boolean> =>
  asked.then(
    () => true,
    () => false,
  )
