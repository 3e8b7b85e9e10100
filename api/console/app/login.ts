import { UserError } from '#api/console/app/api-call.ts'
import { hrefTo, navigate } from '#api/console/app/address.ts'
import { setCredential, signOutAllTabs, type Credential } from '#api/console/app/credential.ts'
import { html, type View } from '#api/console/app/html.ts'
import { actionButton } from '#api/console/app/parts/dialogs.ts'
import { queryView } from '#api/console/app/parts/notes.ts'
import { useQuery } from '#api/console/app/queries.ts'

/** The name of the login provider; null where there is none. */
export const loginName = (): string | null =>
  document.querySelector<HTMLMetaElement>('meta[name="login"]')?.content ?? null

type Choice = { id: string; kind: 'admin' | 'owner' | 'member'; name: string | null }

const choiceTexts: Record<Choice['kind'], (name: string | null) => string> = {
  admin: () => 'Look after teams',
  owner: name => (name === null ? 'Open your vault' : `Open your vault: ${name}`),
  member: name => `Open your vault at ${name}`,
}

/** The key of a link that `npm start` has printed; it works once. @throws UserError. */
export async function keyOfLink(secret: string): Promise<string> {
  const init = { method: 'POST', body: JSON.stringify({ secret }) }
  return (await ask<{ key: string }>('links/open', init)).key
}

/** @throws UserError as the service says it. */
async function ask<Answer>(path: string, init?: RequestInit): Promise<Answer> {
  const response = await fetch(`/console/login/${path}`, init)
  const body = (await response.json()) as Answer & { error?: string }
  if (!response.ok) throw new UserError(body.error ?? 'The service did not answer')
  return body
}

type Props = {
  /** Verifies a credential. */
  verify: (key: string) => Promise<Credential>
}

/** What the person who has just signed in may open; the tab gets a credential for one of these. */
export function LoginChoices({ verify }: Props): View {
  const list = useQuery(
    signal => ask<{ email: string; choices: Choice[] }>('choices', { signal }),
    [],
  )
  const open = async (choice: string): Promise<void> => {
    const init = { method: 'POST', body: JSON.stringify({ choice }) }
    const { key } = await ask<{ key: string }>('open', init)
    setCredential({ ...(await verify(key)), login: true })
    navigate()
  }
  return html`<div class="stack">
    ${queryView(list, 'what you may open', ({ email, choices }) =>
      choices.length === 0
        ? html`<p class="notice">Nothing here belongs to ${email}.</p>`
        : html`<p>You are ${email}.</p>
            <div class="stack">
              ${choices.map(({ id, kind, name }) =>
                actionButton(choiceTexts[kind](name), { act: () => open(id) }),
              )}
            </div>`,
    )}
    <a href=${hrefTo('sign-in')}>Use a key</a>
  </div>`
}

/** Signs out all tabs; a credential that a login has made ends. */
export function signOut({ key, login }: Credential): void {
  if (login) {
    const init = { method: 'POST', headers: { authorization: `Bearer ${key}` }, keepalive: true }
    void fetch('/console/login/end', init).catch(() => undefined)
  }
  signOutAllTabs()
}
