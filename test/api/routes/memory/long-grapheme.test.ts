import t from 'tap'
import { exportLines, importFile, storyLines, uploadFile } from '#test/support/start/memory-file.ts'
import { startService } from '#test/support/start/start-service.ts'

/* One letter with 70,000 combining marks is one grapheme, longer than any memory may be. */

t.setTimeout(0)

const { newClient } = await startService(t)
const grapheme = `e${'\u0301'.repeat(70_000)}`
const said = (content: string) => ({ messages: [{ role: 'user', content }] })

t.test('ingest stores it in memories of at most 512 tokens', async t => {
  const client = await newClient()
  const { status, body } = await client.post('/v1/memory/ingest?wait=true', said(grapheme))
  t.equal(status, 200, JSON.stringify(body))
  const lines = await exportLines(client)
  t.ok(lines.length > 10)
  t.equal(lines.map(({ content }) => content).join('') === grapheme, true, 'nothing is lost')
})

t.test('an upload with it settles, and its other lines are stored', async t => {
  const client = await newClient()
  const { status, body } = await uploadFile(client, [
    { content: 'The kitten is called Ada' },
    { content: grapheme },
    { content: 'The ferry leaves at nine' },
  ])
  t.equal(status, 200, JSON.stringify(body))
  t.match(body, { status: 'complete', stats: { inputItems: 3, failed: 0 } })
  const contents = new Set((await exportLines(client)).map(({ content }) => content))
  t.ok(contents.has('The kitten is called Ada') && contents.has('The ferry leaves at nine'))
})

t.test('an upload takes it alike where every character is escaped, and ingest too', async t => {
  const escaped = (value: object): Buffer =>
    Buffer.from(
      JSON.stringify(value).replaceAll(
        /[^ -~]/g,
        unit => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
      ),
    )
  const uploaded = await newClient()
  const line = escaped({ content: grapheme, timestamp: 1_735_689_600_000 })
  t.ok(line.length > 256 * 1024, `${line.length} bytes`)
  const { status, body } = await uploaded.send('POST', '/v1/memory/upload', {
    body: line,
    headers: { 'content-type': 'application/x-ndjson' },
  })
  t.match({ status, body }, { status: 200, body: { status: 'complete' } })
  const ingested = await newClient()
  const answer = await ingested.send('POST', '/v1/memory/ingest?wait=true', {
    body: escaped(said(grapheme)),
  })
  t.equal(answer.status, 200)
  const texts = async (client: typeof uploaded) =>
    (await exportLines(client)).map(({ content }) => content)
  t.same((await texts(uploaded)).toSorted(), (await texts(ingested)).toSorted())
})

t.test('import takes it as it is; edit refuses it and keeps the memory', async t => {
  const client = await newClient()
  const lines = storyLines()
  lines[2]!.content = grapheme
  const { status, body } = await importFile(client, lines)
  t.equal(status, 200, JSON.stringify(body))
  t.match(body, { status: 'complete', imported: 9, failed: 0 })
  const exported = await exportLines(client)
  t.same(exported, lines)
  const [first] = exported
  const edit = (text: string) => client.post('/v1/memory/edit', { memory_id: first!.id, text })
  const refused = await edit(grapheme)
  t.equal(refused.status, 400)
  t.match(refused.body.error, /32,?000/)
  t.equal((await exportLines(client))[0]!.content, first!.content)
  t.equal((await edit(grapheme.slice(0, 32_000))).status, 200)
})
