import t from 'tap'
import fc from 'fast-check'
import type { ApiFormat } from '#shared/core/provider-registry.ts'
import { dialects } from '#api/proxy/dialects/index.ts'
import { conversation, conversationFields } from '#test/api/proxy/dialects/conversations.ts'
import { extractText } from '#shared/domain/message-content.ts'
import { parseTurns } from '#shared/domain/turn/conversation.ts'
import { sanitizeText } from '#shared/core/sanitize-text.ts'
import { chance, written } from '#test/api/proxy/json/written.ts'

const context = '<memory_context>\n[2 days ago] "Ada" is a cat\\ 猫\n</memory_context>'

const blocks: Record<ApiFormat, string> = {
  openai: JSON.stringify({ role: 'user', content: context }),
  anthropic: JSON.stringify({ type: 'text', text: context }),
  google: JSON.stringify({ text: context }),
  responses: JSON.stringify({
    type: 'message',
    role: 'user',
    content: [{ type: 'input_text', text: context }],
  }),
}

/** Google takes one part for a list of it. */
const listed = (content: unknown): unknown =>
  typeof content === 'object' && content !== null && !Array.isArray(content) ? [content] : content

/** A string or an object at the beginning, as the only one in a list that was made for the block. */
const alone: Record<ApiFormat, RegExp> = {
  openai: /^$/,
  anthropic: /^\{"type":"text","text":("(?:[^"\\]|\\.)*")\}\]/,
  google: /^(\{(?:[^{}"]|"(?:[^"\\]|\\.)*")*\})\]/,
  responses: /^$/,
}

/** What the bytes may have been before the block was put in: into a list, or with a list made for it. */
function withoutBlock(family: ApiFormat, bytes: string): string[] {
  const first = `${blocks[family]},`
  const block = bytes.includes(first) ? first : `,${blocks[family]}`
  const at = bytes.indexOf(block)
  if (at < 0 || bytes.includes(blocks[family], at + 2)) throw new Error('not exactly one block')
  const [before, after] = [bytes.slice(0, at), bytes.slice(at + block.length)]
  const lone = before.endsWith('[') ? alone[family].exec(after) : null
  const unwrapped = lone && before.slice(0, -1) + lone[1] + after.slice(lone[0].length)
  return [before + after, ...(unwrapped === null ? [] : [unwrapped])]
}

for (const family of Object.keys(blocks) as ApiFormat[]) {
  const dialect = dialects[family]

  t.test(`${family}: without a block the bytes are the client's, less the switches`, async t => {
    const holds = fc.property(conversation(family), chance, ({ body }, random) => {
      const { text, without } = written(body, random)
      const request = dialect.parseRequest(Buffer.from(text))
      t.equal(request.serialize({}).toString(), without)
    })
    fc.assert(holds, { numRuns: 150 })
  })

  t.test(`${family}: taking the block out again gives the client's bytes`, async t => {
    const holds = fc.property(conversation(family), chance, ({ body, turns }, random) => {
      const { text, without } = written(body, random)
      const input = Buffer.from(text)
      const request = dialect.parseRequest(input)
      const users = turns.some(({ speaker }) => speaker === 'user')
      t.equal(request.userTurn !== undefined, users)
      const output = request.serialize({ context }).toString()
      if (users) t.ok(withoutBlock(family, output).includes(without))
      else t.equal(output, without)
      t.equal(input.toString(), text)
      JSON.parse(output)
    })
    fc.assert(holds, { numRuns: 150 })
  })

  t.test(`${family}: the block stands before the last words of the user`, async t => {
    const holds = fc.property(conversation(family), chance, ({ body, turns }, random) => {
      const last = turns.findLastIndex(({ speaker }) => speaker === 'user')
      if (last < 0) return
      const { text, without } = written(body, random)
      const output = dialect.parseRequest(Buffer.from(text)).serialize({ context }).toString()
      const list = conversationFields[family]
      const sent = (JSON.parse(output) as Record<string, unknown[]>)[list]!
      const given = (JSON.parse(without) as Record<string, unknown[]>)[list]!
      t.strictSame(sent.slice(0, last), given.slice(0, last), 'earlier turns')
      t.match(JSON.stringify(sent[last]), JSON.stringify(context).slice(1, -1), 'its turn')
    })
    fc.assert(holds, { numRuns: 150 })
  })

  t.test(`${family}: what is said are the turns of the user since the model's`, async t => {
    const holds = fc.property(conversation(family), chance, ({ body, turns }, random) => {
      const { newMessages } = dialect.parseRequest(Buffer.from(written(body, random).text))
      let end = turns.length
      while (turns[end - 1]?.speaker === 'model') end--
      const begin = turns.slice(0, end).findLastIndex(({ speaker }) => speaker === 'model') + 1
      const since = turns.slice(begin, end)
      const expected = since
        .filter(({ speaker, memory }) => speaker === 'user' && memory !== false)
        .flatMap(({ content }) => parseTurns([{ role: 'user', content: listed(content) }]))
        .map(({ text }) => ({ role: 'user', content: text }))
      t.strictSame(newMessages, since.at(-1)?.speaker === 'user' ? expected : [])
    })
    fc.assert(holds, { numRuns: 100 })
  })

  t.test(`${family}: the turns are all there, in order, as memory reads them`, async t => {
    const holds = fc.property(conversation(family), chance, ({ body, turns }, random) => {
      const read = dialect.parseRequest(Buffer.from(written(body, random).text)).turns
      const expected = turns.map(({ role, content, memory }) => ({
        role,
        content: sanitizeText(extractText(listed(content))),
        ...(memory !== undefined && { memory }),
      }))
      t.strictSame(
        read
          .filter(({ role }) => role !== 'system')
          .map(turn => ({ ...turn, content: extractText(turn.content) })),
        expected,
      )
    })
    fc.assert(holds, { numRuns: 100 })
  })

  t.test(`${family}: the model is renamed where it stands`, async t => {
    const holds = fc.property(conversation(family), chance, ({ body }, random) => {
      const text = written(body, random).without
      const request = dialect.parseRequest(Buffer.from(text))
      const output = request.serialize({ model: 'gpt-4o' }).toString()
      if (family === 'google') {
        t.equal(request.model, undefined)
        t.equal(output, text)
      } else {
        t.equal(request.model, 'openai/gpt-4o')
        const name = /^\{\s*"(?:[^"\\]|\\.)*"\s*:\s*/.exec(text)![0]
        const rest = /^"(?:[^"\\]|\\.)*"/.exec(text.slice(name.length))![0]
        t.equal(output, `${name}"gpt-4o"${text.slice(name.length + rest.length)}`)
      }
    })
    fc.assert(holds, { numRuns: 100 })
  })
}
