import t from 'tap'
import { startProxyFixture, type FamilyName } from '#test/support/model-provider/proxy-fixture.ts'
import { insertMemories } from '#test/support/insert-memories.ts'

const world = await startProxyFixture(t)
const { provider, backend, base } = world

const topics = ['bicycle', 'dentist', 'garden', 'piano', 'sister', 'kettle', 'passport', 'boat']
const facts = topics.map((topic, index) => ({
  text: `The ${topic} of Ada is number ${index + 7} in the blue book.`,
}))

/** A request as a client writes it by hand: its own spacing, escapes and number spellings. */
type Written = { path: string; head: string; turn(index: number): string; tail: string }

const question = (index: number): string => `What of the ${topics[(index / 2) % 8]}, 東京 \\u0041?`
const isUser = (index: number): boolean => index % 2 === 0
const marked = (index: number): string =>
  index % 6 === 0 ? ', "cache_control": {"type":"ephemeral"}' : ''

const tools = `"tools":[ {"name" : "look", "input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}} ]`

const written: Record<FamilyName, Written> = {
  openai: {
    path: '/v1/chat/completions',
    head: `{"model":"gpt-4o-mini", "temperature": 1.0e0,\n"messages" : [{"role":"system","content":"Be br\\u0069ef.","x":1}`,
    turn: index =>
      isUser(index)
        ? `, {"role":"user",  "content":"${question(index)}"}`
        : `,\n{"content":[{"type":"text","text":"It is ${index}."}],"role":"assistant"}`,
    tail: `], "max_tokens":10.0, "seed":12345678901234567890}`,
  },
  anthropic: {
    path: '/v1/messages',
    head: `{ "system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}], ${tools}, "model":"claude-sonnet-4-5","messages":[`,
    turn: index =>
      `${index ? ',' : ''}${
        isUser(index)
          ? `{"role":"user","content":[{"type":"text","text":"${question(index)}"${marked(index)}}]}`
          : `\t{"role":"assistant","content":"It is ${index}."}`
      }`,
    tail: `],"max_tokens":1e2}`,
  },
  google: {
    path: '/v1beta/models/gemini-2.5-flash:generateContent',
    head: `{"systemInstruction":{"parts":[{"text":"Be brief."}]},"contents":[`,
    turn: index =>
      `${index ? ' , ' : ''}${
        isUser(index)
          ? `{"role":"user","parts":[ {"text":"${question(index)}"} ]}`
          : `{"parts":[{"text":"It is ${index}.","thoughtSignature":"c2ln"}],"role":"model"}`
      }`,
    tail: `], "generationConfig":{"temperature":0.50}}`,
  },
}

const isAfter = (sent: string, asked: string): boolean =>
  sent.indexOf('<memory_context>') > sent.lastIndexOf(asked)

for (const [family, { path, head, turn, tail }] of Object.entries(written)) {
  t.test(`${family}: twenty turns, and what a provider has cached stays as it was`, async t => {
    const key = await world.newKey()
    await insertMemories(backend, key, facts)
    let before = ''
    let lastSent: Buffer | undefined
    for (let last = 0; last < 40; last += 2) {
      const turns = Array.from({ length: last + 1 }, (_, index) => turn(index))
      const body = head + turns.join('') + tail
      const response = await fetch(base + path, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'x-memory-key': `${key}:read`,
          'x-provider-key': 'sk-own',
        },
        body,
      })
      await response.bytes()
      const { body: bytes } = provider.requests.at(-1)!
      const sent = bytes.toString()
      const earlier = head + turns.slice(0, -1).join('')
      // A block before the question vanishes with the next turn; one behind it takes nothing along.
      const safe = last === 0 || turn(last - 2).includes('cache_control')
      const reusable = Number(response.headers.get('x-memory-cache-bytes'))
      const faults = [
        response.status !== 200 && `status ${response.status}`,
        response.headers.get('x-memory-cache-safe') !== String(safe) && 'cache-safe is not a fact',
        lastSent &&
          !bytes.subarray(0, reusable).equals(lastSent.subarray(0, reusable)) &&
          'too many bytes are said to be reusable',
        last > 0 && reusable < Buffer.byteLength(before) && 'too few bytes are',
        !/blue book/.test(sent) && 'nothing recalled',
        !sent.startsWith(earlier) && 'earlier turns have changed',
        !sent.startsWith(before) && 'the prefix of the turn before has changed',
        !sent.endsWith(tail) && 'what follows the turns has changed',
        sent.indexOf('<memory_context>') < earlier.length && 'the block is too early',
        isAfter(sent, question(last)) !== turn(last).includes('cache_control') &&
          'the block comes before what is asked, or after it where that is marked',
        sent.split('<memory_context>').length !== 2 && 'not one block',
        sent.split('cache_control').length !== body.split('cache_control').length && 'marks',
      ].filter(Boolean)
      if (faults.length > 0) t.comment(sent)
      t.same(faults, [], `turn ${last / 2 + 1}`)
      before = earlier
      lastSent = bytes
    }
  })
}
