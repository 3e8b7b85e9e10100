import { useEffect, useRef, useState } from 'preact/hooks'
import { vaultClient, type EndpointResponse, type VaultClient } from '#api/client/client.ts'
import { filled } from '#api/console/app/api-call.ts'
import { canWrite, conversationKey, currentCredential } from '#api/console/app/credential.ts'
import { formatPercent, pluralize } from '#api/console/app/format.ts'
import { html, type View } from '#api/console/app/html.ts'
import { button } from '#api/console/app/parts/buttons.ts'
import { chip } from '#api/console/app/parts/chips.ts'
import {
  checkboxField,
  form,
  selectField,
  textAreaField,
  textField,
  useFields,
} from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { emptyNote } from '#api/console/app/parts/notes.ts'
import { useCall, type QueryState } from '#api/console/app/queries.ts'
import { traceHref } from '#api/console/app/vault/traces.ts'
import words from '#api/console/app/vault/words.json' with { type: 'json' }
import { givenCards, givenOf, saidView, type Given } from '#api/console/app/vault/given.ts'

type Turn = {
  question: string
  /** Undefined until it is known. */
  given?: Given[]
  confidence?: number | null
  /** Grows while the model answers. */
  answer: string
  /** The answer of the same model without memory, where it was asked for. */
  plain?: string
  /** What of the turn is remembered; empty while it is under way. */
  stored: string
  /** Its address. */
  trace?: string | null
}

type Message = { role: 'user' | 'assistant'; content: string }

/** No model: what a model would be given, and a fixed answer. Until one is chosen it is that of the service. */
const noModel = 'none'

/** The conversation is there again when the page is opened or loaded again; nothing outlives the credential. */
const noConversation = {
  fields: { user: '', model: '', message: '', compares: false },
  turns: [] as readonly Turn[],
  isBegun: false,
}

type Conversation = Omit<typeof noConversation, 'turns'> & { turns: readonly Turn[] }

/** A turn that was under way when the page was left gets nothing more of its answer. */
function readConversation(): Conversation {
  const stored = sessionStorage.getItem(conversationKey)
  const kept = stored === null ? noConversation : (JSON.parse(stored) as Conversation)
  const turns = kept.turns.map(turn =>
    turn.stored === '' ? { given: [], ...turn, stored: 'It broke off: the page was left.' } : turn,
  )
  return { ...kept, turns }
}

function keepConversation(conversation: Conversation): void {
  try {
    sessionStorage.setItem(conversationKey, JSON.stringify(conversation))
  } catch {
    // It is more than a browser keeps.
  }
}

/** A conversation with memory: what was recalled for each message, the answer, and what was stored. */
export function Playground(): View {
  const [kept] = useState(readConversation)
  const { fields, set, of } = useFields(kept.fields)
  const [turns, setTurns] = useState(kept.turns)
  const [isBegun, setBegun] = useState(kept.isBegun)
  useEffect(() => keepConversation({ fields, turns, isBegun }), [fields, turns, isBegun])
  // A conversation that was left gets nothing more of an answer.
  const conversation = useRef(0)
  const models = useCall('GET /v1/models', {})
  const names = models.answer?.models ?? []
  const model = fields.model || models.answer?.default || noModel
  const ask = async (): Promise<void> => {
    const { user, message, compares } = fields
    const history = turns.flatMap(({ question, answer }): Message[] => [
      { role: 'user', content: question },
      { role: 'assistant', content: answer },
    ])
    const messages: Message[] = [...history, { role: 'user', content: message }]
    const begun = conversation.current
    let turn: Turn = { question: message, answer: '', stored: '' }
    const show = (changed: Partial<Turn>): void => {
      turn = { ...turn, ...changed }
      if (conversation.current === begun) setTurns([...turns, turn])
    }
    show({})
    setBegun(true)
    // The next message may be written while the model answers.
    set({ message: '' })
    try {
      await (model !== noModel
        ? Promise.all([
            askModel(user.trim(), model, messages, show),
            compares && askPlainModel(model, messages, plain => show({ plain })),
          ])
        : askNoModel(user.trim(), messages, show))
    } catch (error) {
      if (conversation.current === begun) setTurns(turns)
      set({ message })
      throw error
    }
  }
  const begin = (): void => {
    conversation.current++
    setTurns([])
  }
  const showsSteps = turns.length === 0 || (turns.length === 1 && conversation.current === 0)
  return page({
    title: 'Playground',
    description:
      'Say something, begin a new conversation, and ask about it. What you write is stored in the vault.',
    actions: turns.length > 0 && !showsSteps && button('New conversation', begin),
    children: html`<div class="playground">
      <div class="stack">
        ${showsSteps && examplesView(isBegun, { say: message => set({ message }), begin: turns.length > 0 && begin })}
        <ol class="plain stack">
          ${turns.map((turn, index) => html`<li key=${index} class="stack">${turnView(turn)}</li>`)}
        </ol>
        ${form({
          verb: 'Send',
          kind: 'main',
          act: ask,
          children: html`<div class="filters filters-top">
              ${selectField({
                label: 'Model',
                ...of('model'),
                value: model,
                choices: [
                  [noModel, 'none: memory alone'],
                  ...names.map(name => [name, name] as const),
                ],
                hint: modelHint(models),
              })}
              ${currentCredential()?.owner && textField({ ...words.fields.asUser, ...of('user') })}
              ${
                model !== noModel &&
                checkboxField({ label: 'Beside it: the answer without memory', ...of('compares') })
              }
            </div>
            ${textAreaField({
              ...words.fields.said,
              ...of('message'),
              onKeyDown: sendOnEnter,
            })}`,
        })}
      </div>
      <aside class="stack" aria-label="What was recalled">
        <h2>What was recalled</h2>
        <div class="stack" aria-live="polite">${recalledView(turns.at(-1))}</div>
      </aside>
    </div>`,
  })
}

/** Three steps that show what memory is; the second has the button of a new conversation. */
const examplesView = (
  isBegun: boolean,
  { say, begin }: { say: (message: string) => void; begin: false | (() => void) },
): View =>
  html`<ol class="plain tries-out">
    ${words.tries.map(
      ({ title, words, button: label, message }, index) =>
        html`<li key=${title} class="panel stack-tight">
          <h2>
            ${title} ${isBegun && (index === 0 || (index === 1 && !begin)) && chip('done', 'good')}
          </h2>
          <p class="quiet">${words}</p>
          ${message ? button(label, () => say(message)) : button(label, begin || (() => undefined), { disabled: !begin })}
        </li>`,
    )}
  </ol>`

function sendOnEnter(event: KeyboardEvent): void {
  if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return
  event.preventDefault()
  ;(event.currentTarget as HTMLTextAreaElement).form?.requestSubmit()
}

function recalledView(turn: Turn | undefined): View {
  if (!turn)
    return emptyNote(
      'Nothing was asked yet',
      'The memories that your next message recalls appear here, each with why it was found.',
    )
  const { given, confidence, trace } = turn
  if (!given) return html`<p class="quiet">Looking …</p>`
  if (given.length === 0) return html`<p>Nothing was recalled.</p>`
  const sure = confidence == null ? '' : `, ${formatPercent(confidence)} sure`
  return html`<p>${`Recalled: ${pluralize(given.length, 'memory', 'memories')}${sure}`}</p>
    ${givenCards(given)} ${trace && html`<p><a href=${trace}>Its trace</a></p>`}`
}

/** Why there are no models, or fewer than there are keys. */
function modelHint({ answer, fault }: QueryState<EndpointResponse<'GET /v1/models'>>): string {
  if (fault) return 'No model answers: Settings, Model providers says why.'
  const faults = answer?.providers.flatMap(one => one.fault ?? []) ?? []
  if (faults.length > 0) return faults.join('; ')
  return answer?.models.length === 0
    ? 'A key under Settings, Model providers, adds its models.'
    : ''
}

type Watch = {
  /** Called when the head of an answer is there. */
  onHead?: (headers: Headers) => void
  /** Called with all of the answer so far. */
  onText?: (text: string) => void
}

/** A client of the user's vault that tells an answer as it comes. */
const clientOf = (user: string, { onHead, onText }: Watch = {}): VaultClient =>
  vaultClient(location.origin, currentCredential()?.key ?? '', {
    ...filled({ user }),
    fetch: async (...request) => {
      const response = await fetch(...request)
      if (response.ok) onHead?.(response.headers)
      const isStream = response.headers.get('content-type')?.startsWith('text/event-stream')
      if (isStream && onText) void readDeltas(response.clone(), onText)
      return response
    },
  })

async function readDeltas(response: Response, onText: (text: string) => void): Promise<void> {
  const decoder = new TextDecoder()
  let received = ''
  // What breaks off is told by the whole answer.
  await response.body
    ?.pipeTo(
      new WritableStream<Uint8Array>({
        write(bytes) {
          received += decoder.decode(bytes, { stream: true })
          onText(textOf(received))
        },
      }),
    )
    .catch(() => undefined)
}

type Delta = { choices?: { delta?: { content?: unknown }; message?: { content?: unknown } }[] }

/** The text of an answer: of whole events, or of JSON. */
function textOf(answer: unknown): string {
  const events =
    typeof answer === 'string'
      ? answer
          .split('\n')
          .flatMap(line =>
            /^data: \{.*\}$/.test(line) ? [JSON.parse(line.slice(6)) as Delta] : [],
          )
      : [answer as Delta]
  return events
    .map(({ choices }) => choices?.[0]?.delta?.content ?? choices?.[0]?.message?.content)
    .filter(content => typeof content === 'string')
    .join('')
}

async function askNoModel(
  user: string,
  messages: Message[],
  show: (changed: Partial<Turn>) => void,
): Promise<void> {
  const client = clientOf(user)
  const prepared = await client.call('POST /v1/memory/prepare', { body: { messages } })
  const { context, memories, confidence } = prepared
  const answer =
    context === null
      ? 'A model would be given nothing from memory with this message.'
      : `A model would be given ${pluralize(memories.length, 'memory', 'memories')} with this message.`
  show({ given: givenOf(prepared), confidence, answer })
  if (canWrite()) {
    await client.call('POST /v1/memory/ingest', {
      query: { wait: true },
      body: { messages: [messages.at(-1)!] },
    })
  }
  show({ stored: canWrite() ? 'Your message is stored.' : 'Nothing is stored with this key.' })
}

async function askModel(
  user: string,
  model: string,
  messages: Message[],
  show: (changed: Partial<Turn>) => void,
): Promise<void> {
  let trace: string | null = null
  const read = async (): Promise<void> => {
    if (trace === null) return show({ given: [] })
    const traced = await clientOf(user).call('GET /v1/traces/:traceId', {
      params: { traceId: trace },
    })
    const given = traced.blocks.flatMap(({ memories }) => memories)
    show({
      given: given.map(({ line = '', why = [], relevance }) => ({ line, why, score: relevance })),
      confidence: traced.confidence,
      trace: traceHref(trace, user),
    })
  }
  let reading: Promise<void> | undefined
  // The memories are there before the model has answered.
  const onHead = (headers: Headers): void => {
    trace = headers.get('x-memory-trace')
    reading = read()
  }
  const client = clientOf(user, { onHead, onText: answer => show({ answer }) })
  const body = { model, messages, stream: true }
  const answer = textOf(await client.call('POST /v1/chat/completions', { body }))
  await reading
  const stored = canWrite()
    ? 'Your message and the answer are stored.'
    : 'Nothing is stored with this key.'
  show({ answer: answer || '(no text)', stored })
}

/** The same question to the same model; neither reads nor stores. */
async function askPlainModel(
  model: string,
  messages: Message[],
  show: (answer: string) => void,
): Promise<void> {
  show('')
  const body = { model, messages, stream: true }
  const headers = { 'x-memory-mode': 'off' as const }
  const client = clientOf('', { onText: show })
  show(textOf(await client.call('POST /v1/chat/completions', { body, headers })) || '(no text)')
}

const turnView = ({ question, answer, plain, stored, trace }: Turn): View =>
  html`${saidView('You', 'user', question)}
    <div class=${plain === undefined ? 'stack' : 'halves'}>
      ${saidView(plain === undefined ? (trace === undefined ? 'Memory alone' : 'Answer') : 'With memory', 'assistant', answer || '…', stored)}
      ${plain !== undefined && saidView('Without memory', 'plain', plain || '…')}
    </div>`
