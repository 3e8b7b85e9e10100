import { useState } from 'preact/hooks'
import { vaultClient, type EndpointResponse, type VaultClient } from '#api/client/client.ts'
import { filled } from '#api/console/app/api-call.ts'
import { canWrite, currentCredential } from '#api/console/app/credential.ts'
import { pluralize } from '#api/console/app/format.ts'
import { html, type View } from '#api/console/app/html.ts'
import { button } from '#api/console/app/parts/buttons.ts'
import { chip } from '#api/console/app/parts/chips.ts'
import {
  form,
  selectField,
  textAreaField,
  textField,
  useFields,
} from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { useCall, type QueryState } from '#api/console/app/queries.ts'
import { traceHref } from '#api/console/app/vault/traces.ts'
import { givenOf, givenView, type Given } from '#api/console/app/vault/given.ts'

type Turn = {
  question: string
  given: Given[]
  confidence: number | null
  answer: string
  /** What of the turn is remembered. */
  stored: string
  /** Its address. */
  trace: string | null
}

type Message = { role: 'user' | 'assistant'; content: string }

/** No model: what a model would be given, and a fixed answer. */
const noModel = ''

/** A conversation with memory: what was recalled for each message, the answer, and what was stored. */
export function Playground(): View {
  const { fields, set, of } = useFields({ user: '', model: noModel, message: '' })
  const [turns, setTurns] = useState<readonly Turn[]>([])
  const models = useCall('GET /v1/models', {})
  const names = models.answer?.models ?? []
  const ask = async (): Promise<void> => {
    const history = turns.flatMap(({ question, answer }): Message[] => [
      { role: 'user', content: question },
      { role: 'assistant', content: answer },
    ])
    const messages: Message[] = [...history, { role: 'user', content: fields.message }]
    const turn = fields.model
      ? await askModel(fields.user.trim(), fields.model, messages)
      : await askNoModel(fields.user.trim(), messages)
    setTurns([...turns, turn])
    set({ message: '' })
  }
  return page({
    title: 'Playground',
    description:
      'Say something, begin a new conversation, and ask about it. What you write is stored in the vault.',
    actions: turns.length > 0 && button('New conversation', () => setTurns([])),
    children: html`<ol class="plain stack">
        ${turns.map((turn, index) => html`<li key=${index} class="stack">${turnView(turn)}</li>`)}
      </ol>
      ${form({
        verb: 'Send',
        kind: 'main',
        act: ask,
        children: html`<div class="filters">
            ${selectField({
              label: 'Model',
              ...of('model'),
              choices: [
                [noModel, 'none: memory alone'],
                ...names.map(name => [name, name] as const),
              ],
              hint: modelHint(models),
            })}
            ${
              currentCredential()?.owner &&
              textField({
                label: 'As the user',
                ...of('user'),
                maxlength: 256,
                placeholder: 'the vault of this key',
                hint: 'Your own id. A new one makes a user.',
              })
            }
          </div>
          ${textAreaField({ label: 'Message', ...of('message'), rows: 2, required: true, maxlength: 20_000 })}`,
      })}`,
  })
}

/** Why there are no models, or fewer than there are keys. */
function modelHint({ answer, fault }: QueryState<EndpointResponse<'GET /v1/models'>>): string {
  if (fault) return fault.message
  const faults = answer?.providers.flatMap(one => one.fault ?? []) ?? []
  if (faults.length > 0) return faults.join('; ')
  return answer?.models.length === 0 ? 'A provider key on the page Keys adds its models.' : ''
}

/** A client of the user's vault, and the headers of its last answer. */
function clientOf(user: string): { client: VaultClient; headers: () => Headers } {
  let last = new Headers()
  const client = vaultClient(location.origin, currentCredential()?.key ?? '', {
    ...filled({ user }),
    fetch: async (...request) => {
      const response = await fetch(...request)
      last = response.headers
      return response
    },
  })
  return { client, headers: () => last }
}

async function askNoModel(user: string, messages: Message[]): Promise<Turn> {
  const { client } = clientOf(user)
  const prepared = await client.call('POST /v1/memory/prepare', { body: { messages } })
  const said = messages.at(-1)!
  if (canWrite()) {
    await client.call('POST /v1/memory/ingest', {
      query: { wait: true },
      body: { messages: [said] },
    })
  }
  const { context, memories, confidence } = prepared
  return {
    question: said.content,
    given: givenOf(prepared),
    confidence,
    answer:
      context === null
        ? 'No model is chosen. One would get nothing from memory for this message.'
        : `No model is chosen. One would get ${pluralize(memories.length, 'memory', 'memories')} with this message.`,
    stored: canWrite() ? 'Your message is stored.' : 'Nothing is stored with this key.',
    trace: null,
  }
}

async function askModel(user: string, model: string, messages: Message[]): Promise<Turn> {
  const { client, headers } = clientOf(user)
  const body = { model, messages }
  const completion = (await client.call('POST /v1/chat/completions', { body })) as {
    choices?: { message?: { content?: unknown } }[]
  }
  const trace = headers().get('x-memory-trace')
  const content = completion.choices?.[0]?.message?.content
  const params = { traceId: trace ?? '' }
  const traced = trace ? await client.call('GET /v1/traces/:traceId', { params }) : undefined
  const given = (traced?.blocks ?? []).flatMap(({ memories }) => memories)
  return {
    question: messages.at(-1)!.content,
    given: given.map(({ line = '', why = [] }) => ({ line, why })),
    confidence: traced?.confidence ?? null,
    answer: typeof content === 'string' ? content : '(no text)',
    stored: canWrite()
      ? 'Your message and the answer are stored.'
      : 'Nothing is stored with this key.',
    trace: trace && traceHref(trace, user),
  }
}

const turnView = ({ question, given, confidence, answer, stored, trace }: Turn): View =>
  html`<article class="memory stack-tight">
      <header class="memory-head chips">${chip('You', 'user')}</header>
      <p class="memory-text">${question}</p>
    </article>
    ${givenView(given, confidence)}
    <article class="memory stack-tight">
      <header class="memory-head chips">${chip('Answer', 'assistant')}</header>
      <p class="memory-text">${answer}</p>
      <p class="quiet">${stored} ${trace && html`<a href=${trace}>Its trace</a>`}</p>
    </article>`
