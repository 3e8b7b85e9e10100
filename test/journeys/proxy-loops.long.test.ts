import t, { type Test } from 'tap'
import type { ApiFormat } from '#shared/core/provider-registry.ts'
import { createTestClient, startTestApi, startJobWorkers } from '#test/support/api.ts'
import { createTestBackend, createTestConfig } from '#test/support/backend.ts'
import { respondJson, respondWith } from '#test/support/model-provider/answers.ts'
import { createProxyAccount } from '#test/support/model-provider/proxy-fixture.ts'
import { startModelProvider } from '#test/support/model-provider.ts'
import { insertMemories } from '#test/support/insert-memories.ts'

/** A model that calls tools is asked again and again within one turn of its user. */

const provider = await startModelProvider(t)
const config = await createTestConfig(t, provider.env)
const [backend, second] = [
  await createTestBackend(t, { config }),
  await createTestBackend(t, { config }),
]
const one = (await startTestApi(t, backend)).base
const two = (await startTestApi(t, second)).base
const { newKey } = await createProxyAccount(backend, one)
await startJobWorkers(backend)

const steps = 12
const question = 'Which colour has the bicycle of my sister? Look it up.'

type Written = {
  path(stream: boolean): string
  head(stream: boolean): string
  /** What the user asks, after a turn that is over. */
  asks: string
  /** A call of a tool, and its result. */
  step(index: number): string
  tail: string
  /** The model calls a tool. */
  answer: unknown
}

const written: Record<ApiFormat, Written> = {
  openai: {
    path: () => '/v1/chat/completions',
    head: stream =>
      `{"model":"gpt-4o-mini", "stream":${stream}, "messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello."}`,
    asks: `, {"role":"user",  "content":"${question}"}`,
    step: index =>
      `,\n{"role":"assistant","content":null,"tool_calls":[{"id":"c${index}","type":"function","function":{"name":"look","arguments":"{}"}}]}, {"role":"tool","tool_call_id":"c${index}","content":"The bicycle of shelf ${index} is grey."}`,
    tail: `], "seed":12345678901234567890}`,
    answer: {
      choices: [
        {
          index: 0,
          finish_reason: 'tool_calls',
          delta: { tool_calls: [{ index: 0, id: 'c', function: { name: 'look' } }] },
        },
      ],
    },
  },
  anthropic: {
    path: () => '/v1/messages',
    head: stream =>
      `{"system":"Be brief.", "stream":${stream}, "model":"claude-sonnet-4-5","messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello."}`,
    asks: `,{"role":"user","content":[{"type":"document","cache_control":{"type":"ephemeral"}},{"type":"text","text":"${question}"}]}`,
    step: index =>
      `, {"role":"assistant","content":[{"type":"text","text":"Let me see."},{"type":"tool_use","id":"c${index}","name":"look","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c${index}","content":"The bicycle of shelf ${index} is grey."}]}`,
    tail: `],"max_tokens":1e2}`,
    answer: {
      type: 'message',
      stop_reason: 'tool_use',
      content: [{ type: 'tool_use', id: 'c', name: 'look', input: {} }],
    },
  },
  google: {
    path: stream =>
      `/v1beta/models/gemini-2.5-flash:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    head: () =>
      `{"contents":[{"role":"user","parts":[{"text":"Hi"}]},{"role":"model","parts":[{"text":"Hello."}]}`,
    asks: ` , {"role":"user","parts":[ {"text":"${question}"} ]}`,
    step: index =>
      `, {"role":"model","parts":[{"functionCall":{"name":"look","args":{}}}]}, {"role":"user","parts":[{"functionResponse":{"name":"look","response":{"it":"The bicycle of shelf ${index} is grey."}}}]}`,
    tail: `], "generationConfig":{"temperature":0.50}}`,
    answer: { candidates: [{ content: { parts: [{ functionCall: { name: 'look' } }] } }] },
  },
  responses: {
    path: () => '/v1/responses',
    head: stream =>
      `{"model":"gpt-5-mini", "stream":${stream}, "input":[{"type":"additional_tools","role":"developer","tools":[]},{"role":"user","content":"Hi"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Hello."}]}`,
    asks: `, {"type":"message","role":"user","content":[{"type":"input_text","text":"${question}"}]}`,
    step: index =>
      `, {"type":"reasoning","summary":[],"encrypted_content":"x${index}"},{"type":"custom_tool_call","call_id":"c${index}","name":"exec","input":"look"}, {"type":"custom_tool_call_output","call_id":"c${index}","output":[{"type":"input_text","text":"The bicycle of shelf ${index} is grey."}]}`,
    tail: `], "store":false, "include":["reasoning.encrypted_content"]}`,
    answer: {
      type: 'response.completed',
      response: { id: 'resp_1', status: 'completed', output: [{ type: 'custom_tool_call' }] },
    },
  },
}

const told = [
  { text: 'The bicycle of my sister is orange.' },
  { text: 'My sister sold a bicycle that was green.' },
]

/** The bytes a provider got for one step of a loop, without what follows the conversation. */
async function sentAt(
  base: string,
  key: string,
  { path, head, asks, step, tail }: Written,
  { stream, index }: { stream: boolean; index: number },
): Promise<{ sent: string; status: string | null }> {
  const turns = Array.from({ length: index }, (_, done) => step(done)).join('')
  const response = await fetch(base + path(stream), {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-memory-key': key },
    body: head(stream) + asks + turns + tail,
  })
  await response.bytes()
  if (response.status !== 200) throw new Error(`status ${response.status}`)
  const sent = provider.requests.at(-1)!.body.toString()
  if (!sent.endsWith(tail)) throw new Error(`the end has changed: ${sent}`)
  return { sent: sent.slice(0, -tail.length), status: response.headers.get('x-memory-status') }
}

const answering = (answer: unknown, stream: boolean): void =>
  provider.respondAlways(
    stream
      ? respondWith([`data: ${JSON.stringify(answer)}\n\n`, 'data: [DONE]\n\n'])
      : respondJson(answer),
  )

/** Something that the question calls to mind, as somebody else may tell it at any time. */
const more = (key: string, index: number) =>
  insertMemories(backend, key, [
    { text: `The bicycle of my sister has the colour number ${index}.` },
  ])

const families = Object.entries(written) as [ApiFormat, Written][]

for (const [family, how] of families) {
  for (const stream of [false, true]) {
    for (const [where, bases] of [
      ['one process', [one]],
      ['two', [one, two]],
    ] as const) {
      const name = `${family}${stream ? ', streaming' : ''}: ${steps} steps in ${where}`
      t.test(`${name} send the same beginning`, async t => {
        const key = await newKey()
        await insertMemories(backend, key, told)
        answering(how.answer, stream)
        const sent: string[] = []
        for (let index = 0; index < steps; index++) {
          const base = bases[index % bases.length]!
          const { sent: now, status } = await sentAt(base, key, how, { stream, index })
          if (status !== 'ok') t.fail(`step ${index}: ${status}`)
          sent.push(now)
          await more(key, index)
        }
        const broken = sent.flatMap((now, index) =>
          index > 0 && !now.startsWith(sent[index - 1]!) ? [index] : [],
        )
        t.same(broken, [], 'every request goes on from where the one before ended')
        t.match(sent[0], /orange[^]*green|green[^]*orange/)
        t.equal(sent.at(-1)!.split('<memory_context>').length, 2)
        const fresh = await sentAt(one, key, how, { stream, index: 0 })
        t.match(fresh.sent, 'colour number', 'asked anew, what came since is known')
        provider.respondAlways()
      })
    }
  }
}

async function forgottenInTheMiddle(t: Test, how: Written): Promise<void> {
  const key = await newKey()
  const [orange] = await insertMemories(backend, key, told)
  answering(how.answer, false)
  const at = (base: string, index: number) => sentAt(base, key, how, { stream: false, index })
  t.match((await at(one, 0)).sent, 'is orange')
  t.match((await at(two, 1)).sent, 'is orange')
  await createTestClient(one).post(
    '/v1/memory/delete-ids',
    { ids: [orange] },
    { 'x-memory-key': key },
  )
  for (const [index, base] of [two, one, two].entries()) {
    const { sent } = await at(base, index + 2)
    t.notMatch(sent, 'is orange')
    t.match(sent, 'was green')
  }
  await createTestClient(one).send('DELETE', '/v1/memory', {
    headers: { 'x-memory-key': key, prefer: 'respond-async' },
  })
  for (const base of [one, two]) {
    const { sent, status } = await at(base, 6)
    t.notMatch(sent, 'memory_context')
    t.equal(status, 'none')
  }
  provider.respondAlways()
}

for (const [family, how] of families) {
  t.test(`${family}: what is deleted in the middle is gone from the next step`, t =>
    forgottenInTheMiddle(t, how),
  )
}
