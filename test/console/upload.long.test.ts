import { writeFileSync } from 'node:fs'
import t from 'tap'
import type { Page } from 'playwright-core'
import { look, press, visit } from '#test/console/browser.ts'
import { startConsole } from '#test/console/console.ts'
import { buildKey, createTestClient } from '#test/support/start/api.ts'
import { chatgptConversation, zipOf } from '#test/support/samples/foreign-exports.ts'

const { backend, base, test } = await startConsole(t)
const dir = t.testdir()

const written = (name: string, content: string | Buffer): string => {
  writeFileSync(`${dir}/${name}`, content)
  return `${dir}/${name}`
}
const choose = (page: Page, ...files: string[]): Promise<void> =>
  page.getByLabel('File', { exact: true }).setInputFiles(files)
const contents = async (key: string): Promise<string[]> =>
  (await createTestClient(base, key).get('/v1/memory/export')).body.map(
    ({ content }: { content: string }) => content,
  )

test('an export of ChatGPT: what it holds is shown, then stored; again it adds nothing', async (t, {
  page,
  open,
}) => {
  const key = await buildKey(backend)
  await open(key, 'files')
  await look(t, page, 'upload')
  const portal = zipOf({
    'conversations.json': JSON.stringify([chatgptConversation(), chatgptConversation('c-2')]),
    'chat.html': '<p>',
  })
  // As OpenAI's privacy portal mails it: an archive within another.
  const file = written('export.zip', zipOf({ 'User Online Activity/Conversations-1.zip': portal }))
  for (const outcome of ['5 stored, 3 already there', '0 stored, 8 already there']) {
    await choose(page, file)
    await page
      .getByText('An export of ChatGPT: 2 conversations, 8 memories from 1 Feb 2025 to 1 Feb 2025.')
      .waitFor()
    await page.getByText('Left out: messages of branches that were edited').waitFor()
    if (outcome.startsWith('5')) {
      t.same(await contents(key), [], 'nothing is sent before it is confirmed')
      await look(t, page, 'upload-found')
    }
    await press(page, 'Store 8 memories')
    await page.getByText(`${outcome}, 0 faulty`).waitFor()
    await page.getByText('100 % of 8 memories').waitFor()
    await look(t, page, 'upload-done')
    await press(page, 'Upload another file')
  }
  const said = await contents(key)
  t.equal(said.length, 5)
  t.ok(said.includes('What shall I call my kitten?'))
})

test('notes and files of the memory tool are known by their names', async (t, { page, open }) => {
  const key = await buildKey(backend)
  await open(key, 'files')
  for (const [name, files, said] of [
    [
      'vault.zip',
      { 'Boats/Otter.md': 'My boat is red.', '.obsidian/a.json': '{}' },
      'Markdown notes',
    ],
    ['tool.zip', { 'memories/plan.md': 'I live in Husum.' }, "Claude's memory tool"],
  ] as const) {
    await choose(page, written(name, zipOf(files)))
    await page.getByText(`An export of ${said}`).first().waitFor()
    await press(page, 'Store 1 memory')
    await page.getByText('1 stored, 0 already there, 0 faulty').waitFor()
    await press(page, 'Upload another file')
  }
  t.same((await contents(key)).toSorted(), ['I live in Husum.', 'Otter\n\nMy boat is red.'])
})

test('a wrong file says what can be read, and may be called what it is', async (t, {
  page,
  open,
}) => {
  const key = await buildKey(backend)
  await open(key, 'files')
  await choose(page, written('report.pdf', '%PDF-1.7'))
  await page.getByText('report.pdf is of no kind that can be read here').waitFor()
  await page.getByText('npm run import-file').waitFor()
  await page.getByText('the zip that was mailed, or conversations.json').first().waitFor()
  await look(t, page, 'upload-unknown')
  await page.getByLabel('It is').selectOption('chatgpt')
  await page.getByText('report.pdf is not JSON at character 0').waitFor()
  await choose(page, written('list.json', '[{"content":"x"}]'))
  await page.getByText('a file of lines has an object on each line').waitFor()
  t.equal(await page.getByRole('button', { name: /^Store/ }).count(), 0)
})

test('a lost connection waits, stops, and goes on where it was', async (t, { page, open }) => {
  const key = await buildKey(backend)
  await open(key, 'files')
  const lines = Array.from({ length: 12_000 }, (_, n) => JSON.stringify({ content: `Fact ${n}` }))
  lines[11_000] = '{"role":"user"}'
  await choose(page, written('facts.jsonl', lines.join('\n')))
  await page.getByText('A file of lines: 12,000 lines').waitFor()
  let sent = 0
  await page.route('**/v1/memory/upload', route => (++sent > 1 ? route.abort() : route.continue()))
  await press(page, 'Store 12,000 lines')
  // It goes on while another page is shown.
  await visit(page, 'operations')
  await visit(page, 'files')
  await page.getByText(/No answer: .*; again in \d+ s/).waitFor()
  t.match(await page.locator('main').innerText(), /10,000 stored/)
  await press(page, 'Stop')
  await page.getByText('Stopped.').waitFor()
  await page.unroute('**/v1/memory/upload')
  await press(page, 'Continue')
  await page.getByText('11,999 stored, 0 already there, 1 faulty').waitFor()
  t.match(await page.locator('main').innerText(), /Line 11,001: /)
  t.equal((await contents(key)).length, 11_999)
})

test('a refusal stops it with the words of the service', async (t, { page, open }) => {
  await open(await buildKey(backend), 'files')
  await page.route('**/v1/memory/upload', route =>
    route.fulfill({ status: 402, json: { error: 'No card on file', hint: 'Ask the operator' } }),
  )
  await choose(page, written('one.jsonl', '{"content":"x"}'))
  await press(page, 'Store 1 line')
  await page.getByText('No card on file').waitFor()
  await page.getByText('Ask the operator').waitFor()
  await look(t, page, 'upload-refused')
  await press(page, 'Forget it')
  await page.getByLabel('File', { exact: true }).waitFor()
})
