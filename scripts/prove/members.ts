import { randomUUID } from 'node:crypto'
import { quantile } from '#scripts/bench/measure.ts'
import type { Cluster, RequestOptions } from '#scripts/prove/cluster.ts'
import {
  createLimit,
  Faults,
  pickOne,
  runLoops,
  type SectionContext,
  type SectionResult,
} from '#scripts/prove/section.ts'

/** Members who ask at the same time, each of both organizations. */
const askers = 2
/** An age in words may change between two answers; what a hidden memory changes differs each time. */
const triesMax = 4
const hiddenText = 'The bonus of Eve is ninety thousand for the harbour project'

/** An organization whose members ask; one of the two has memories that they may not see. */
type TwinOrganization = {
  /** Keys of members who see what is open. */
  askers: string[]
  /** Key of a member who sees everything. */
  board: string
  /** Id of a hidden memory; one of nothing in the organization that has none. */
  hidden: string
}

type Question = { path: string; expects: number } & RequestOptions

const ask = 'What is the bonus of Eve in the harbour project?'

/** Every way to read, and what is answered where a memory is named that one may not see. */
const questions: Record<string, (twin: TwinOrganization) => Question> = {
  search: () => reading('/v1/memory/search', { query: ask, limit: 50 }),
  prepare: () => reading('/v1/memory/prepare', { messages: [{ role: 'user', content: ask }] }),
  'date-search by time': () => reading('/v1/memory/date-search', { from: '2020-01-01' }),
  'date-search by question': () =>
    reading('/v1/memory/date-search', { from: '2020-01-01', query: ask }),
  'model call': () => ({
    ...reading('/v1/chat/completions', {
      model: 'openai/gpt-5',
      messages: [{ role: 'user', content: ask }],
    }),
    headers: { 'x-provider-key': 'sk-of-the-proof', 'x-memory-store': 'false' },
  }),
  list: () => reading('/v1/memory/list?search=bonus'),
  stats: () => reading('/v1/memory/stats'),
  export: () => reading('/v1/memory/export'),
  sessions: () => reading('/v1/memory/sessions'),
  profile: () => reading('/v1/memory/profile'),
  shares: () => reading('/v1/shares'),
  operations: () => reading('/v1/operations'),
  warmup: () => reading('/v1/memory/warmup', {}),
  'inspect by id': ({ hidden }) => naming('/v1/memory/inspect', { memory_id: hidden }),
  'edit by id': ({ hidden }) => naming('/v1/memory/edit', { memory_id: hidden, text: 'mine' }),
  'share by id': ({ hidden }) => ({ ...naming(`/v1/shares/${hidden}`), method: 'DELETE' }),
  'trace by id': ({ hidden }) => naming(`/v1/traces/${hidden}`),
  'operation by id': ({ hidden }) => naming(`/v1/operations/${hidden}`),
}

const reading = (path: string, body?: object): Question => ({ path, body, expects: 200 })
const naming = (path: string, body?: object): Question => ({ path, body, expects: 404 })

/**
 * Members of two like organizations ask the same; one organization also has memories that they may not see. The
 * answers, and what a model is sent, are the same.
 */
export async function proveMembers(context: SectionContext): Promise<SectionResult> {
  const { cluster, random } = context
  const faults = new Faults()
  const [hiding, plain] = await Promise.all([
    createTwin(cluster, 'members-hiding', true),
    createTwin(cluster, 'members-plain', false),
  ])
  const times = { hiding: [] as number[], plain: [] as number[] }
  let differing = 0
  let wrong = 0
  const isOver = createLimit(context, () => times.hiding.length)
  await checkVisibility()
  await runLoops(askers, isOver, async asker => {
    const name = pickOne(Object.keys(questions), random)
    let answers = await askBoth(name, asker)
    for (let tries = 1; answers.hiding !== answers.plain && tries < triesMax; tries++)
      answers = await askBoth(name, asker)
    if (answers.hiding === answers.plain) return
    differing++
    faults.add(`${name} differs: ${firstDifference(answers.hiding, answers.plain)}`)
  })
  await checkVisibility()
  const slower = times.hiding.filter((time, n) => time > times.plain[n]!).length
  return {
    figures: [
      { name: 'pairs of answers', value: times.hiding.length },
      { name: 'answers that differ', value: differing, most: 0 },
      { name: 'answers with a status that is neither expected nor 503', value: wrong, most: 0 },
      { name: 'p50 with a hidden memory', value: quantile(times.hiding, 0.5), unit: 'ms' },
      { name: 'p50 without', value: quantile(times.plain, 0.5), unit: 'ms' },
      {
        name: 'pairs of which that with a hidden memory was slower',
        value: (100 * slower) / Math.max(1, times.hiding.length),
        unit: '%',
      },
    ],
    faults: faults.first,
  }

  /** Asks the same process of both organizations, in random order. */
  async function askBoth(name: string, asker: number): Promise<{ hiding: string; plain: string }> {
    const port = pickOne(cluster.ports, random)
    const answers = { hiding: '', plain: '' }
    const order = random() < 0.5 ? (['hiding', 'plain'] as const) : (['plain', 'hiding'] as const)
    const spent = { hiding: 0, plain: 0 }
    for (const side of order) {
      const twin = side === 'hiding' ? hiding : plain
      const { path, expects, ...options } = questions[name]!(twin)
      const startedAt = performance.now()
      const { status, text } = await cluster.send(port, twin.askers[asker]!, path, options)
      spent[side] = performance.now() - startedAt
      // A busy machine may ask to try again, and is asked again.
      if (status !== expects && status !== 503) {
        wrong++
        faults.add(`${name} was answered with ${status} ${text}`)
      }
      answers[side] = `${status} ${blur(text.replaceAll(twin.hidden, '(id)'))}`
    }
    times.hiding.push(spent.hiding)
    times.plain.push(spent.plain)
    return answers
  }

  /** The comparison says something: who may see the hidden memory finds it, and who asks finds what is open. */
  async function checkVisibility(): Promise<void> {
    const { path, body } = questions.search!(hiding)
    const finds = async (key: string, text: string): Promise<boolean> =>
      (await cluster.send(cluster.ports[0]!, key, path, { body })).text.includes(text)
    if (!(await finds(hiding.board, hiddenText))) faults.add('the board does not find the memory')
    if (await finds(plain.board, hiddenText)) faults.add('a memory was never stored, and is found')
    for (const { askers } of [hiding, plain])
      if (!(await finds(askers[0]!, openText(0)))) faults.add('members do not find what is open')
  }
}

const openText = (n: number): string => `Part ${n} of the harbour project is under way`

async function createTwin(
  cluster: Cluster,
  name: string,
  isHiding: boolean,
): Promise<TwinOrganization> {
  const { adminKey } = await cluster.createOwner(name)
  // oxlint-disable-next-line typescript/no-explicit-any -- answers of several operations
  const create = async (path: string, body: object): Promise<any> => {
    const { status, text } = await cluster.send(cluster.ports[0]!, adminKey, path, { body })
    if (status >= 200 && status < 300) return JSON.parse(text)
    throw new Error(`${path} was answered with ${status} ${text}`)
  }
  const { org_id: org } = await create('/v1/orgs', { name: 'members' })
  const path = `/v1/orgs/${org}`
  for (const label of ['open', 'people']) await create(`${path}/tags`, { label })
  const addMember = async (member: string, tags: string[]): Promise<string> => {
    const role = await create(`${path}/roles`, { name: member, allowed_tags: tags })
    const { memory_key } = await create(`${path}/keys`, { team_member_id: member })
    const role_ids = [role.role_id]
    await create(`${path}/role-assignments`, { team_member_id: member, role_ids })
    return memory_key as string
  }
  const open = Array.from({ length: 20 }, (_, n) => ({
    text: openText(n),
    tags: n % 2 ? ['open'] : [],
  }))
  await create(`${path}/memories`, { items: open })
  let hidden: string = randomUUID()
  if (isHiding) {
    const others = Array.from({ length: 20 }, (_, n) => `The bonus of person ${n} is ${n} thousand`)
    const items = [hiddenText, ...others].map(text => ({ text, tags: ['people'] }))
    const seeded = await create(`${path}/memories`, { items })
    hidden = seeded.items[0].mem_id as string
  }
  const board = await addMember('board', ['*'])
  const keys: string[] = []
  for (let n = 0; n < askers; n++) {
    const key = await addMember(`asker ${n}`, ['open'])
    const messages = [{ role: 'user', content: 'My part of the harbour project is the crane' }]
    await cluster.send(cluster.ports[0]!, key, '/v1/memory/ingest?wait=true', {
      body: { messages, share: false },
    })
    keys.push(key)
  }
  return { askers: keys, board, hidden }
}

/** What differs between two organizations that cannot be told apart: ids, keys, owners, times and how long it took. */
const blur = (text: string): string =>
  text
    .replaceAll(/[\w-]+@example\.com/g, '(email)')
    .replaceAll(/mk_[\w…]+/g, '(key)')
    .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '(id)')
    .replaceAll(/\d{4}-\d\d-\d\d(T[\d:.]+Z)?/g, '(time)')
    .replaceAll(/\d\d:\d\d/g, '(time)')
    .replaceAll(/just now|(?:\d+|an?) \w+ ago/g, '(age)')
    .replaceAll(/\b1[78]\d{11}\b/g, '(ms)')
    .replaceAll(/(_ms\\?":)[\d.]+/g, '$1(ms)')
    .replaceAll(/(\d\.\d\d)\d+/g, '$1')

function firstDifference(one: string, other: string): string {
  let at = 0
  while (one[at] === other[at]) at++
  const part = (text: string): string => text.slice(Math.max(0, at - 60), at + 120)
  return `${part(one)} | ${part(other)}`
}
