import { useState } from 'preact/hooks'
import { VaultError } from '#api/client/client.ts'
import { hrefTo, useAddress } from '#api/console/app/address.ts'
import { clientWith } from '#api/console/app/api-call.ts'
import { currentCredential, maskKey, type Credential } from '#api/console/app/credential.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { button, copyButton } from '#api/console/app/parts/buttons.ts'
import { page, section } from '#api/console/app/parts/frame.ts'
import { faultNote } from '#api/console/app/parts/notes.ts'
import { useAction } from '#api/console/app/queries.ts'
import { programSnippets } from '#api/console/app/vault/connect/program-snippets.ts'
import {
  sdkSnippets,
  type ClientRights,
  type ConnectedClient,
  type Snippet,
} from '#api/console/app/vault/connect/sdk-snippets.ts'

const connectedClients: Record<string, ConnectedClient> = { ...sdkSnippets, ...programSnippets }
const noClient = { client: 'openai' }
const kinds = ['Your own program', 'Coding agents', 'Chat and editors'] as const

/** What to paste where, for each client, with the address of this service and a key of the client's own. */
export function Connect(): View {
  const { fields } = useAddress(noClient)
  const name = Object.hasOwn(connectedClients, fields.client) ? fields.client : noClient.client
  return page({
    title: 'Connect',
    description: 'Paste one of these, and what is said there is remembered here.',
    children: html`<div class="connect">
      <nav class="places" aria-label="Clients">
        ${kinds.map(
          kind =>
            html`<div key=${kind}>
              <p class="places-name">${kind}</p>
              <ul>
                ${Object.entries(connectedClients)
                  .filter(([, client]) => client.kind === kind)
                  .map(([id, client]) => clientLink(id, client, id === name))}
              </ul>
            </div>`,
        )}
      </nav>
      ${renderComponent(ClientView, { ...connectedClients[name]!, key: name })}
    </div>`,
  })
}

const clientLink = (id: string, client: ConnectedClient, isCurrent: boolean): View =>
  html`<li key=${id}>
    <a href=${`${hrefTo('connect')}?client=${id}`} aria-current=${isCurrent ? 'true' : undefined}
      >${client.name}</a
    >
  </li>`

/** A client, with a key of its own: that of this tab, which may speak for the account, is copied nowhere. */
function ClientView({ name, snippets, notes, users }: ConnectedClient): View {
  const credential = currentCredential()!
  const [made, setMade] = useState<string>()
  const action = useAction()
  const rights = users === 'named' && credential.owner ? 'users' : 'memory'
  const key = made ?? (mayMint(credential) ? undefined : credential.key)
  const place = { url: location.origin, rights } as const
  const masked = key === undefined ? 'mk_…' : maskKey({ key })
  const shown = snippets({ ...place, key: masked })
  const act = async (): Promise<void> => setMade(await mintFor(name, rights, credential))
  return section(
    name,
    html`<div class="stack-wide">
      ${users !== undefined && rights === 'memory' && html`<p class="notice">${shared(name)}</p>`}
      ${
        key === undefined &&
        html`<div class="stack-tight">
          <p>
            ${button(`Make a key for ${name}`, () => action.run({ act }), {
              kind: 'main',
              disabled: action.isRunning,
            })}
          </p>
          <p class="quiet">${keyText[rights]}</p>
          ${faultNote(action.fault)}
        </div>`
      }
      ${snippets({ ...place, key: key ?? '' }).map((snippet, index) =>
        snippetView(snippet, shown[index]!.text, key !== undefined),
      )}
      <ul class="connect-notes quiet">
        ${notes.map(note => html`<li key=${note}>${note}</li>`)}
        ${key !== undefined && html`<li>The key is hidden on this page; the button copies it whole.</li>`}
      </ul>
    </div>`,
  )
}

const keyText = {
  memory:
    'It opens this vault and does nothing for the account. It stands under Keys, where it is revoked.',
  users:
    'It opens a vault for each user that the program names, and does nothing for the account. It stands under Keys, where it is revoked.',
}

const shared = (name: string): string =>
  `Everybody who uses this ${name} shares the vault of this key.`

/** Whether the key of this tab can make another: those of members cannot. */
const mayMint = ({ kind, member }: Credential): boolean => kind === 'vault' && !member

/** Makes a key for a client, with the suffix of the tab's key; a key that makes none is used itself. */
async function mintFor(name: string, rights: ClientRights, { key }: Credential): Promise<string> {
  const [whole, suffix] = key.split(':')
  try {
    const body = { name, rights }
    const made = await clientWith({ key: whole! }).call('POST /v1/keys', { body })
    return suffix === undefined ? made.key : `${made.key}:${suffix}`
  } catch (error) {
    if (error instanceof VaultError && error.status === 403) return key
    throw error
  }
}

const snippetView = ({ file, text }: Snippet, shown: string, isWhole: boolean): View =>
  html`<figure key=${file} class="snippet stack-tight">
    <figcaption class="section-head">
      <code>${file}</code>
      ${isWhole && copyButton('Copy with the key', text, { about: file })}
    </figcaption>
    <pre class="code" tabindex="0">${shown}</pre>
  </figure>`
