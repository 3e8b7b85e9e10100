import { hrefTo, useAddress } from '#api/console/app/address.ts'
import { currentCredential, maskKey } from '#api/console/app/credential.ts'
import { html, type View } from '#api/console/app/html.ts'
import { copyButton } from '#api/console/app/parts/buttons.ts'
import { page, section } from '#api/console/app/parts/frame.ts'
import { programSnippets } from '#api/console/app/vault/connect/program-snippets.ts'
import {
  sdkSnippets,
  type ConnectedClient,
  type Snippet,
} from '#api/console/app/vault/connect/sdk-snippets.ts'

const connectedClients: Record<string, ConnectedClient> = { ...sdkSnippets, ...programSnippets }
const noClient = { client: 'openai' }
const kinds = ['Your own program', 'Coding agents', 'Chat and editors'] as const

/** What to paste where, for each client, with the address of this service and the key of this tab. */
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
      ${clientView(connectedClients[name]!)}
    </div>`,
  })
}

const clientLink = (id: string, client: ConnectedClient, isCurrent: boolean): View =>
  html`<li key=${id}>
    <a href=${`${hrefTo('connect')}?client=${id}`} aria-current=${isCurrent ? 'true' : undefined}
      >${client.name}</a
    >
  </li>`

function clientView({ name, snippets, notes }: ConnectedClient): View {
  const credential = currentCredential()!
  const place = { url: location.origin, key: credential.key }
  const shown = snippets({ ...place, key: maskKey(credential) })
  return section(
    name,
    html`<div class="stack-wide">
      ${snippets(place).map((snippet, index) => snippetView(snippet, shown[index]!.text))}
      <ul class="connect-notes quiet">
        ${notes.map(note => html`<li key=${note}>${note}</li>`)}
        <li>The key is hidden on this page; the button copies it whole.</li>
      </ul>
    </div>`,
  )
}

const snippetView = ({ file, text }: Snippet, shown: string): View =>
  html`<figure key=${file} class="snippet stack-tight">
    <figcaption class="section-head">
      <code>${file}</code>
      ${copyButton('Copy with the key', text, { about: file })}
    </figcaption>
    <pre class="code" tabindex="0">${shown}</pre>
  </figure>`
