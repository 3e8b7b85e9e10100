import { readFileSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { buildKey, createTestClient } from '#test/support/start/api.ts'
import { chatCompletion } from '#test/support/doubles/chat-stream.ts'
import { insertMemories } from '#test/support/start/insert-memories.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'
import { respondJson } from '#test/support/doubles/model-provider/answers.ts'
import { startModelProvider } from '#test/support/doubles/model-provider.ts'
import { barriersOf, look, picture, press, settled, signIn, visit } from '#test/console/browser.ts'
import { startConsole } from '#test/console/console.ts'
import { fillVault } from '#test/console/stories.ts'

const provider = await startModelProvider(t)
const { backend, key, api, test, story } = await startConsole(t, provider.env)
await fillVault(backend, api, key)

story(
  'a key that opens nothing is told, one that does is kept for the tab',
  async (t, { page }) => {
    await page.goto('/console')
    await picture(page, 'door')
    await page.getByLabel('Key').fill('mk_00000000000000000000000000000000')
    await press(page, 'Open')
    await page.getByRole('alert').getByText('No vault and no team opens with this key').waitFor()
    await signIn(page, key)
    await page.reload()
    await page.getByRole('button', { name: 'Sign out' }).waitFor()
    t.notMatch(page.url(), key, 'never in an address')
    t.same(await page.context().cookies(), [])
    t.notMatch(
      await page.evaluate(() => JSON.stringify(Object.entries(localStorage))),
      key.slice(3),
    )
  },
)

test('a link signs in, once', async (t, { page }) => {
  const { status, body } = await api.post('/console/login/links', {})
  t.equal(status, 201)
  await page.goto(body.path)
  await page.getByText('This link opens a vault of').waitFor()
  t.match(await page.locator('main').innerText(), new RegExp(key.slice(-4)), 'which key')
  await press(page, 'Open this vault')
  await page.getByRole('button', { name: 'Sign out' }).waitFor()
  t.notMatch(page.url(), 'open', 'the secret is out of the address')
  await press(page, 'Sign out')
  await page.goto('about:blank')
  await page.goto(body.path)
  await page.getByText('This link has been used').waitFor()
  const stranger = createTestClient(api.base, 'mk_00000000000000000000000000000000')
  t.equal((await stranger.post('/console/login/links', {})).status, 401)
  t.equal((await stranger.post('/console/login/links/open', {})).status, 400)
})

story('overview: how much there is, and what waits', async (t, { page }) => {
  await settled(page)
  await picture(page, 'overview')
  t.match(await page.locator('main').innerText(), /Memories\s+12/)
  t.match(await page.locator('main').innerText(), /3 memories, \d+ tokens/)
})

story('search: best first, with the reasons and the words marked', async (t, { page }) => {
  await visit(page, 'search')
  await page.getByLabel('Question').fill('does my cat fear thunder?')
  await page.keyboard.press('Enter')
  await page.locator('.results li').first().waitFor()
  await picture(page, 'search')
  const first = page.locator('.results li').first()
  t.match(await first.innerText(), /cat.*Ada/)
  t.match(await first.locator('.why').innerText(), /^1\s+\d\.\d\d score/)
  t.match(await first.locator('.why').innerText(), /Has words of the question: .*cat/)
  t.ok((await first.locator('mark').allInnerTexts()).includes('thunder'))
  await page.getByText('Options').click()
  await page.getByLabel('Importance').selectOption('7')
  await press(page, 'Search', { exact: true })
  await page.locator('.results .chip-raw').first().waitFor({ state: 'detached' })
  t.notMatch(await page.locator('.results').innerText(), /\bRaw\b/, 'reflections alone')
})

story('calls: what was asked and recalled, and why', async (t, { page }) => {
  const [id] = await insertMemories(backend, key, [{ text: 'The bicycle is orange.' }])
  provider.respondAlways(respondJson(chatCompletion('Orange.')))
  const response = await fetch(`${api.base}/v1/chat/completions`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-memory-key': `${key}:read`,
      'x-provider-key': 'sk-own',
    },
    body: JSON.stringify({
      model: 'openai/gpt-5',
      messages: [{ role: 'user', content: 'Which bicycle is orange?' }],
    }),
  })
  await response.text()
  const trace = response.headers.get('x-memory-trace')!
  const logged = async () => (await api.get(`/v1/traces/${trace}`)).status === 200
  await waitUntil('the call is in the log', logged)
  await visit(page, 'traces')
  await page.getByRole('link', { name: /^Model call, openai\/gpt-5, 1 memory/ }).click()
  await page.getByRole('heading', { name: 'Call', exact: true }).waitFor()
  await page.getByText('The bicycle is orange.').waitFor()
  await picture(page, 'trace')
  t.match(page.url(), new RegExp(`traces\\?open=${trace}$`))
  t.match(await page.locator('main').innerText(), /found by\s+its words/)
  t.same(await barriersOf(page), [])
  await api.post('/v1/memory/delete-ids', { ids: [id] })
  await press(page, 'Close')
  await press(page, 'Filter', { exact: true })
  await page.getByText('Open a call by its trace').click()
  await page.getByLabel('Trace of a call').fill(trace)
  await press(page, 'Open', { exact: true })
  await page.getByText(`Deleted since, or not to be seen with this key: ${id}`).waitFor()
  t.notMatch(await page.locator('main').innerText(), /bicycle/)
})

story('timeline: filters, whole texts, and texts that look like markup', async (t, { page }) => {
  await visit(page, 'timeline')
  await picture(page, 'timeline')
  t.equal(await page.locator('article').count(), 10)
  t.match(await page.locator('main').innerText(), /<img src=x onerror=/)
  t.not(await page.title(), 'taken')
  await page.getByRole('button', { name: /^Long thoughts/ }).click()
  t.match(await page.locator('.line-open').innerText(), /^assistant, [^]*Long thoughts/)
  await look(t, page, 'timeline-open')
  await page.getByLabel('Text contains').fill('lisbon')
  await page.waitForFunction(() => document.querySelectorAll('article').length === 2)
  await page.getByLabel('Tier').selectOption('2')
  await page.waitForFunction(() => document.querySelectorAll('article').length === 1)
  await page.getByLabel('Text contains').fill('nothing like this')
  await page.getByText('Nothing matches').waitFor()
  t.pass()
})

story('timeline: a memory is edited, and after a question deleted', async (t, { page }) => {
  await visit(page, 'overview')
  await visit(page, 'timeline')
  const dentist = page.locator('article', { hasText: 'dentist' })
  await press(dentist, /^Edit/)
  await page.getByRole('dialog').getByLabel('Text').fill('The dentist is on Friday at ten.')
  await press(page, 'Save')
  await page.getByText('The memory is changed.').waitFor()
  t.equal((await api.get('/v1/memory/list?search=Friday')).body.items.length, 1)

  // The focus is back where it was.
  await page.waitForFunction(() =>
    document.activeElement?.getAttribute('aria-label')?.startsWith('Edit: '),
  )
  const end = async (value: string) => {
    await press(dentist, /^Edit/)
    await page.getByRole('dialog').getByLabel('Expires').fill(value)
    await press(page, 'Save')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    return (await api.get('/v1/memory/list?search=Friday')).body.items[0].expires_at
  }
  t.match(await end('2090-01-31T10:00'), /^2090-01-3/)
  await dentist.getByText(/^Expires in \d+ years/).waitFor()
  await picture(page, 'expires')
  t.equal(await end(''), undefined)
  t.equal(await dentist.getByText(/^Expires/).count(), 0)
  await press(dentist, /^Delete/)
  await page.getByRole('dialog').getByText('cannot be brought back').waitFor()
  await picture(page, 'delete')
  await page.keyboard.press('Escape')
  t.equal(await dentist.count(), 1)
  await press(dentist, /^Delete/)
  await press(page.getByRole('dialog'), 'Delete')
  await dentist.waitFor({ state: 'detached' })
  t.equal((await api.get('/v1/memory/list?search=Friday')).body.items.length, 0)
})

story('reflections: lineage leads up and down', async (t, { page }) => {
  await visit(page, 'reflections')
  await picture(page, 'reflections')
  await page.locator('article', { hasText: 'afraid of thunder' }).getByText('Lineage').click()
  await page.getByRole('img', { name: /^1 reflection above it, \d+ sources? below it$/ }).waitFor()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('4 sources, 1 deleted since').waitFor()
  await picture(page, 'lineage')
  await press(dialog, /A person who makes a home/)
  await dialog.getByText('A high-level reflection is the top.').waitFor()
  await press(dialog, /lives in Lisbon/)
  await press(dialog, /We moved to Lisbon/)
  await dialog.getByText('Covered by').waitFor()
  t.match(await dialog.locator('.lineage-here').innerText(), /We moved to Lisbon/)
  await press(dialog, 'Close')
  t.equal(await dialog.count(), 0)
})

story('profile: what was said of a person, as quotes with their time', async (t, { page }) => {
  await visit(page, 'profile')
  const moved = page.locator('main li', { hasText: 'We moved to Lisbon' })
  await moved.first().waitFor()
  t.match(await moved.first().innerText(), /since/)
  t.match(await page.locator('main').innerText(), /Places/i)
  await picture(page, 'profile')
})

story('sessions: one is opened, taken along and cleared', async (t, { page }) => {
  await visit(page, 'sessions')
  t.match(await page.locator('main li', { hasText: 'trip-1' }).innerText(), /2 memories/)
  await picture(page, 'sessions-all')
  await press(page, 'Open: trip-1')
  await page.getByText('Let us plan the trip to Porto.').waitFor()
  await picture(page, 'sessions')
  const download = page.waitForEvent('download')
  await press(page, 'Export')
  const lines = readFileSync(await (await download).path(), 'utf8')
    .trim()
    .split('\n')
  t.same(
    lines.map(line => (JSON.parse(line) as { session_id: string }).session_id),
    ['trip-1', 'trip-1'],
  )
  await press(page, 'Clear')
  await press(page.getByRole('dialog'), 'Clear')
  await page.getByText('Nothing in this session').waitFor()
  await press(page, 'All sessions')
  await page.getByText('No session here').waitFor()
})

story('files: a file is uploaded with its faults told, the vault exported', async (t, { page }) => {
  const file = `${t.testdir()}/chat.jsonl`
  const texts = Array.from({ length: 2_300 }, (_, i) => JSON.stringify({ content: `Fact ${i}` }))
  texts[2_100] = '{"role":"user"}'
  writeFileSync(file, texts.join('\n'))
  await visit(page, 'files')
  await page.getByLabel('File', { exact: true }).setInputFiles(file)
  await press(page, 'Store 2,300 lines')
  await page.getByText('2,299 stored, 0 already there, 1 faulty').waitFor()
  await picture(page, 'files')
  t.match(await page.locator('main').innerText(), /Line 2,101: /)
  const download = page.waitForEvent('download')
  await press(page, 'Download export')
  const lines = readFileSync(await (await download).path(), 'utf8')
    .trim()
    .split('\n')
  t.equal(lines.length, 2_299 + 9)
})

story('operations: what was done, with its outcome', async (t, { page }) => {
  await visit(page, 'operations')
  await page.getByText('Nothing waits, and nothing has failed').waitFor()
  await press(page, 'All', { exact: true })
  await picture(page, 'operations')
  await page
    .locator('article', { hasText: 'Upload of a file' })
    .first()
    .getByText('Outcome (200)')
    .click()
  t.match(await page.locator('pre').first().innerText(), /"stored": 2299/)
})

story('usage: sums and a chart', async (t, { page }) => {
  await backend.usage.flush()
  await visit(page, 'usage')
  await page.getByLabel('Chart of').selectOption('Requests')
  await page.getByRole('heading', { name: 'Requests a day' }).waitFor()
  await page.locator('.history-bars').first().waitFor()
  await picture(page, 'usage')
  t.match(
    await page.getByRole('img').first().getAttribute('aria-label'),
    /Requests: \d+ in 30 days/,
  )
})

story(
  'keys: a new one is shown once, and a rotated one goes on in this tab',
  async (t, { page }) => {
    await visit(page, 'keys')
    await picture(page, 'keys')
    await press(page, /^New key/)
    await page.getByRole('dialog').getByLabel('Name').fill('Phone')
    await press(page, 'Create')
    const minted = await page.locator('.secret').innerText()
    t.equal((await createTestClient(api.base, minted).get('/v1/memory/stats')).body.memories, 0)
    await press(page, 'I have copied it')
    const phone = page.getByRole('listitem').filter({ hasText: minted.slice(-4) })
    await phone.filter({ hasText: 'Phone' }).waitFor()
    await visit(page, 'history')
    t.match(
      await page.locator('ol li').first().innerText(),
      new RegExp(`made\\s+a key\\s+Phone\\s+mk_.*…${minted.slice(-4)}`),
    )
    await visit(page, 'keys')

    await press(page, 'Rotate this key')
    await press(page, 'Rotate', { exact: true })
    await page.getByText('Your new key').waitFor()
    await picture(page, 'secret')
    const rotated = await page.locator('.secret').innerText()
    await press(page, 'I have copied it')
    await visit(page, 'overview')
    t.match(await page.locator('main').innerText(), /Memories\s+2,308/)
    t.equal((await api.get('/v1/memory/stats')).status, 401)
    t.equal((await createTestClient(api.base, rotated).get('/v1/memory/stats')).status, 200)
  },
)

test('keys: another is revoked, after a question, and its vault erased', async (t, { open }) => {
  const own = await buildKey(backend)
  const client = createTestClient(api.base, own)
  const [phone, laptop] = await Promise.all(
    ['Phone', 'Laptop'].map(async name => (await client.post('/v1/keys', { name })).body.key),
  )
  const messages = [{ role: 'user', content: 'only on the laptop' }]
  await createTestClient(api.base, laptop).post('/v1/memory/ingest?wait=true', { messages })
  const page = await open(own, 'keys')
  t.equal(await page.getByRole('button', { name: /^Revoke: key/ }).count(), 2, 'not its own')
  await press(page, /^Revoke: key Phone/)
  await picture(page, 'revoke')
  await press(page.getByRole('dialog'), 'Revoke')
  await page.getByText('The key is revoked.').waitFor()
  t.equal((await createTestClient(api.base, phone).get('/v1/memory/stats')).status, 401)

  await press(page, /^Revoke: key Laptop/)
  await page.getByLabel('Erase its vault too').check()
  await page
    .getByRole('dialog')
    .getByLabel(/Type erase/)
    .fill('erase')
  await press(page.getByRole('dialog'), 'Revoke and erase')
  await page.getByText('its vault erased').waitFor()
  const exported = JSON.stringify((await client.get('/v1/account/export')).body)
  t.notMatch(exported, 'only on the laptop')
})

test('a read-only key offers nothing that it may not do', async (t, { open }) => {
  const page = await open(`${await buildKey(backend)}:read`)
  await settled(page)
  await page.getByText('Nothing is remembered yet').waitFor()
  await visit(page, 'files')
  t.equal(await page.getByLabel('File', { exact: true }).count(), 0)
})

test('the key of a user shows its vault, and nothing of the account', async (t, { open }) => {
  const owner = createTestClient(api.base, await buildKey(backend))
  const user = (await owner.post('/v1/keys', { name: 'of a user' })).body.key
  const page = await open(user, 'keys')
  await picture(page, 'keys-of-a-user')
  const text = await page.locator('main').innerText()
  t.match(text, /It opens this vault alone/)
  t.notMatch(text, /Model providers|History/)
  t.equal(await page.getByRole('button', { name: 'Rotate this key' }).count(), 1)
  t.equal(await page.getByRole('alert').count(), 0)
  t.equal(await page.getByRole('link', { name: 'Policy' }).count(), 0)
})

test('a key that ends signs out and says why', async (t, { open }) => {
  const ending = await buildKey(backend)
  const page = await open(ending)
  await visit(page, 'search')
  await page.getByLabel('Question').fill('anything')
  await createTestClient(api.base, ending).post('/v1/keys/rotate')
  // What the page asks by itself may have told it already.
  await page.keyboard.press('Enter')
  await page.getByText('The credential is no longer valid.').waitFor()
  t.equal(await page.evaluate(() => sessionStorage.length), 0)
})
