import { useState } from 'preact/hooks'
import { VaultError } from '#api/client/client.ts'
import { hrefTo, useAddress } from '#api/console/app/address.ts'
import { clientWith } from '#api/console/app/api-call.ts'
import { currentCredential, maskKey, type Credential } from '#api/console/app/credential.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { button, copyButton } from '#api/console/app/parts/buttons.ts'
import { hasClipboard } from '#api/console/app/parts/clipboard.ts'
import { page, section } from '#api/console/app/parts/frame.ts'
import { onSubmit, textField } from '#api/console/app/parts/fields.ts'
import { faultNote } from '#api/console/app/parts/notes.ts'
import { useAction, useCall, useRefresh } from '#api/console/app/queries.ts'
import { traceHref } from '#api/console/app/vault/traces.ts'
import {
  kinds,
  notesOf,
  programs,
  type ClientRights,
  type Program,
} from '#api/client/programs/programs.ts'
import { snippetsOf, type Snippet } from '#api/client/programs/snippets.ts'
import words from '#api/console/app/vault/words.json' with { type: 'json' }
import type { TraceSummary } from '#api/contract/generated/types.ts'

const noClient = { client: 'openai' }

/** With little room the list folds, so that what is to be pasted stands on the first screen. */
const hasRoom = (): boolean => matchMedia('(min-width: 56rem)').matches

/** What to paste where, for each client, with the address of this service and a key of the client's own. */
export function Connect(): View {
  const { fields, setFields } = useAddress(noClient)
  const [words, setWords] = useState('')
  const [isListed, setListed] = useState(hasRoom)
  const name = Object.hasOwn(programs, fields.client) ? fields.client : noClient.client
  return page({
    title: 'Connect',
    description: 'Paste one of these, and what is said there is remembered here.',
    children: html`<div class="connect">
      <div class="stack">
        <form
          onSubmit=${onSubmit(() => {
            const [first] = matching(words)
            if (first) setFields({ client: first[0] })
          })}
        >
          ${textField({
            label: 'Find',
            type: 'search',
            value: words,
            onValue: setWords,
            placeholder: 'Python, Codex …',
          })}
        </form>
        <details
          open=${isListed || words !== ''}
          onToggle=${({ currentTarget }: Event) => setListed((currentTarget as HTMLDetailsElement).open)}
        >
          <summary>Programs and libraries</summary>
          <nav class="places" aria-label="Clients" onClick=${() => setListed(hasRoom())}>
            ${kinds.map(kind => group(kind, words, name))}
          </nav>
        </details>
        <p class="quiet" role="status">
          ${matching(words).length === 0 && 'None of this name: “Any program” and “Any MCP client” take the rest.'}
        </p>
      </div>
      ${renderComponent(ProgramView, { program: programs[name]!, key: name })}
    </div>`,
  })
}

/** Those whose name, group or snippets have all the words; `Python` finds what has a snippet in Python. */
function matching(words: string): [id: string, program: Program][] {
  const wanted = words.toLowerCase().split(/\s+/)
  return Object.entries(programs).filter(([, program]) => {
    const files = snippetsOf(program, { url: '', key: '', rights: 'memory' }).map(
      ({ file }) => file,
    )
    const text = [program.name, program.kind, ...files].join(' ').toLowerCase()
    return program.kind && wanted.every(word => text.includes(word))
  })
}

function group(kind: (typeof kinds)[number], words: string, current: string): View | false {
  const found = matching(words).filter(([, program]) => program.kind === kind)
  return (
    found.length > 0 &&
    html`<div key=${kind}>
      <p class="places-name">${kind}</p>
      <ul>
        ${found.map(([id, program]) => programLink(id, program.name, id === current))}
      </ul>
    </div>`
  )
}

const programLink = (id: string, name: string, isCurrent: boolean): View =>
  html`<li key=${id}>
    <a href=${`${hrefTo('connect')}?client=${id}`} aria-current=${isCurrent ? 'true' : undefined}
      >${name}</a
    >
  </li>`

/** A program, with a key of its own: that of this tab, which may speak for the account, is copied nowhere. */
function ProgramView({ program }: { program: Program }): View {
  const { name, users } = program
  const credential = currentCredential()!
  const [made, setMade] = useState<MadeKey>()
  const action = useAction()
  const rights = users === 'named' && credential.owner ? 'users' : 'memory'
  const key = made?.key ?? (mayMint(credential) ? undefined : credential.key)
  const place = { url: location.origin, rights } as const
  const masked = key === undefined ? 'mk_…' : maskKey({ key })
  const isHidden = key === undefined || hasClipboard
  const shown = snippetsOf(program, { ...place, key: masked })
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
          <p class="quiet">
            ${words.clients[rights]} Then this page tells you when the first call arrives.
          </p>
          ${faultNote(action.fault)}
        </div>`
      }
      ${key !== undefined && !isHidden && html`<p class="notice">The key stands here this one time: copy it now. Without https a browser may refuse to copy it by itself.</p>`}
      ${made?.id !== undefined && renderComponent(FirstCall, { id: made.id, name })}
      ${snippetsOf(program, { ...place, key: key ?? '' }).map((snippet, index) =>
        snippetView(snippet, isHidden ? shown[index]!.text : snippet.text, key !== undefined),
      )}
      <ul class="connect-notes quiet">
        <li>
          ${'Send a session id (X-Session-ID) only where a conversation shall have memories of its own: what is said in one session is recalled in no other. Most products leave it out, or send '}<code
            >X-Memory-Sessions: core</code
          >${' with it.'}
        </li>
        ${notesOf(program, 'console', rights).map(note => html`<li key=${note}>${note}</li>`)}
        ${
          key !== undefined &&
          isHidden &&
          html`<li>The key is hidden on this page; the button copies it whole.</li>`
        }
      </ul>
    </div>`,
  )
}

const shared = (name: string): string =>
  `Everybody who uses this ${name} shares the vault of this key.`

/** Whether the key of this tab can make another: those of members cannot. */
const mayMint = ({ kind, member }: Credential): boolean => kind === 'vault' && !member

/** `id` where the list of keys, which an owner may read, tells its use. */
type MadeKey = { key: string; id: string | undefined }

const lookMs = 2_000

/** Waits for the first call with a key. */
function FirstCall({ id, name }: { id: string; name: string }): View {
  const [since] = useState(() => new Date(Date.now() - 1_000).toISOString())
  const keys = useCall('GET /v1/keys', { query: { active: true, limit: 20 } })
  const isUsed = keys.answer?.items.some(key => key.id === id && key.last_used_at !== null)
  useRefresh(keys.refetch, isUsed ? undefined : lookMs)
  const calls = useCall('GET /v1/traces', { query: { account: true, since, limit: 1 } })
  useRefresh(calls.refetch, isUsed ? lookMs : undefined)
  const latest = isUsed ? calls.answer?.items[0] : undefined
  return html`<ol class="steps stack-close">
    <li class="done">A key for ${name}</li>
    <li class=${isUsed && !latest?.error ? 'done' : ''}>
      <span role="status"
        >${isUsed ? calledWords(name, latest) : 'Waiting for its first call'}</span
      >
    </li>
  </ol>`
}

/** What came of the latest call; not every program makes one that is logged. */
function calledWords(name: string, latest: TraceSummary | undefined): View {
  if (!latest)
    return html`Got it: ${name} has called. <a href=${hrefTo('timeline')}>See the timeline</a>`
  const { trace_id: id, user, error, answer_status: status } = latest
  const link = html`<a href=${traceHref(id, user)}>See the call</a>`
  if (!error) return html`Got it: ${name} has called. ${link}`
  const from = error.from ?? 'this service'
  return html`${name} has called, but ${from} answered ${status}. ${error.words} ${link}`
}

/** Makes a key for a client, with the suffix of the tab's key; a key that makes none is used itself. */
async function mintFor(
  name: string,
  rights: ClientRights,
  { key, owner }: Credential,
): Promise<MadeKey> {
  const [whole, suffix] = key.split(':')
  try {
    const body = { name, rights }
    const made = await clientWith({ key: whole! }).call('POST /v1/keys', { body })
    const id = owner ? made.id : undefined
    return { id, key: suffix === undefined ? made.key : `${made.key}:${suffix}` }
  } catch (error) {
    if (error instanceof VaultError && error.status === 403) return { key, id: undefined }
    throw error
  }
}

const snippetView = ({ file, text }: Snippet, shown: string, isWhole: boolean): View =>
  html`<figure key=${file} class="snippet stack-tight">
    <figcaption class="section-head">
      <code>${file}</code>
      ${copyButton(isWhole ? 'Copy with the key' : 'Copy', isWhole ? text : shown, { about: file })}
    </figcaption>
    <pre class="code" tabindex="0">${shown}</pre>
  </figure>`
