import t from 'tap'
import { dialects } from '#api/proxy/dialects/index.ts'
import { longContentBytesMin } from '#api/proxy/dialects/long-content.ts'

/* Long messages of model calls are read in a thread, to what they are at once. */

/** What is over a mebibyte is read in the thread. */
const length = 1.1 * longContentBytesMin
const prose = 'My cat is called Ada, she was born in May; the vet is in Naxos. '
const block = '<memory_context>\n[3 hours ago · 2026-11-20 15:15 UTC · user] x\n</memory_context>\n'
const repeated = (piece: string, length: number): string =>
  piece.repeat(Math.ceil(length / piece.length))

const texts: Record<string, string> = {
  prose: repeated(prose, length),
  'characters of several bytes': `é${repeated('😀é日', length)}`,
  'harness in between': repeated(
    `<system-reminder>\n${prose}\n</system-reminder>\nWhere is Ada?\n\n\n\n`,
    length,
  ),
  'harness alone': `<system-reminder>\n${repeated(prose, length)}\n</system-reminder>`,
  'a template': `Context:\n${repeated(`${prose}\n`, length)}\nQuestion: Where is Ada?\nAnswer:`,
  'code blocks': repeated(`\`\`\`\n${prose}\n\`\`\`\n`, length),
  'echoes of our block': `${repeated(block, length)}Where is Ada?`,
}

const request = (content: unknown, last?: string) =>
  Buffer.from(
    JSON.stringify({
      model: 'gpt-4o-mini',
      messages: [
        { role: 'user', content: 'Hello' },
        { role: 'assistant', content: repeated(prose, length) },
        { role: 'user', content, name: 'Ada' },
        ...(last === undefined ? [] : [{ role: 'user', content: last }]),
      ],
    }),
  )

t.test('what is said, asked and left out is the same as at once', async t => {
  for (const [name, text] of Object.entries(texts)) {
    const parts = [{ type: 'text', text }, { type: 'image_url' }]
    for (const body of [request(text), request(parts, 'And the dog?')]) {
      const atOnce = dialects.openai.parseRequest(body)
      const ahead = await dialects.openai.parseInSlices(body)
      await ahead.readAhead()
      t.equal(ahead.aside, atOnce.aside, name)
      t.same(ahead.leftOut, atOnce.leftOut)
      t.ok(ahead.userTurn!.fingerprint.equals(atOnce.userTurn!.fingerprint), 'fingerprint')
      t.ok(JSON.stringify(ahead.newMessages) === JSON.stringify(atOnce.newMessages), 'messages')
      const storable = [ahead, atOnce].map(({ userTurn }) => JSON.stringify(userTurn!.storable))
      t.ok(storable[0] === storable[1], 'storable')
      const context = { context: 'block' }
      t.ok(ahead.serialize(context).equals(atOnce.serialize(context)), 'bytes')
    }
  }
})

t.test('of long messages the beginning and the end are recalled for', async t => {
  const text = `First words. ${texts['prose']} Where is Ada?`
  const body = request(text)
  const ahead = await dialects.openai.parseInSlices(body)
  await ahead.readAhead()
  const [hello, reply, asked] = ahead.turns
  t.match([hello!.role, hello!.content], ['user', 'Hello'])
  t.match([reply!.role, asked!.role, asked!.name], ['assistant', 'user', 'Ada'])
  for (const { content } of [reply!, asked!]) {
    t.ok((content as string).length < longContentBytesMin, 'it is bounded')
  }
  t.match(asked!.content, /^First words\./)
  t.match(asked!.content, /Where is Ada\?$/)
  ahead.forgetTexts()
  t.ok(ahead.turns[2]!.content === text, 'read again, it is all there')
})
