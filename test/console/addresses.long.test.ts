import type { Locator } from 'playwright-core'
import t from 'tap'
import { barriersOf, overflowOf, picture, press, settled, visit } from '#test/console/browser.ts'
import { startConsole } from '#test/console/console.ts'
import { fillTeam } from '#test/console/stories.ts'
import { buildKey, createTestClient } from '#test/support/start/api.ts'
import { checkOut, commit, ingestTexts } from '#test/support/start/consolidation.ts'
import { insertMemories } from '#test/support/start/insert-memories.ts'

const { backend, key, api, base, test } = await startConsole(t)
const texts = Array.from({ length: 120 }, (_, i) => ({ text: `Note ${i}: the ferry at ${i}.` }))
await insertMemories(backend, key, [...texts, { text: 'My parrot is called Rio.' }])

test('search: the address keeps it, through Back, Forward and a reload', async (t, { open }) => {
  const page = await open(key, 'search')
  const search = async (question: string): Promise<void> => {
    await page.getByLabel('Question').fill(question)
    await page.keyboard.press('Enter')
    await page.waitForURL(url =>
      url.hash.includes(new URLSearchParams({ query: question }).toString()),
    )
    await settled(page)
  }
  await page.getByText('Options').click()
  await page.getByLabel('At most').selectOption('5')
  await search('the parrot')
  await page.locator('.results li').first().getByText('Rio').waitFor()
  await search('the ferry')
  t.match(new URL(page.url()).hash, '#/search?query=the+ferry&limit=5')
  await page.goBack()
  await page.locator('.results li').first().getByText('Rio').waitFor()
  t.equal(await page.getByLabel('Question').inputValue(), 'the parrot')
  await page.goForward()
  await page.locator('.results li').first().locator('mark').getByText('ferry').waitFor()
  await page.reload()
  await page.locator('.results li').first().locator('mark').getByText('ferry').waitFor()
  t.equal(await page.getByLabel('Question').inputValue(), 'the ferry')
  t.equal(await page.locator('.results li').count(), 5)
  t.notMatch(page.url(), key)
})

test('timeline: filters and pages are there again after Back', async (t, { open }) => {
  const page = await open(key, 'timeline')
  const rows = page.locator('article')
  await press(page, 'Show more')
  await rows.nth(99).waitFor()
  await page.waitForURL(/pages=2/)
  await page.getByRole('link', { name: 'Usage' }).click()
  await page.getByRole('heading', { name: 'Usage' }).waitFor()
  await page.goBack()
  await rows.nth(99).waitFor()
  t.equal(await rows.count(), 100, 'both pages')
  await page.getByLabel('Text contains').fill('parrot')
  await page.waitForURL(/search=parrot/)
  await page.waitForFunction(() => document.querySelectorAll('article').length === 1)
  t.match(await page.locator('main').innerText(), /Some of the core vault: 121 raw memories/)
  await page.goBack()
  await rows.nth(99).waitFor()
  t.equal(await page.getByLabel('Text contains').inputValue(), '')
})

test('sessions and reflections: an address opens what was looked at', async (t, { open }) => {
  const own = await buildKey(backend)
  const client = createTestClient(api.base, own)
  await ingestTexts(client, ['The ferry leaves at noon.'], { session: 'trip & møre/1' })
  await ingestTexts(client, ['We moved to Lisbon.'])
  const { body: batch } = await checkOut(client)
  await commit(client, batch.batch_id, [{ text: 'Lives in Lisbon.', importance: 8 }])
  const { body: above } = await checkOut(client, { tier: 2 })
  await commit(client, above.batch_id, [{ text: 'Likes the sea.', importance: 9 }])
  const page = await open(own, 'sessions')
  await press(page, 'Open: trip & møre/1')
  await page.locator('article').getByText('The ferry leaves').waitFor()
  t.match(page.url(), /#\/sessions\?session=trip/)
  await page.reload()
  await page.locator('article').getByText('The ferry leaves').waitFor()
  t.equal(await page.getByLabel('Session', { exact: true }).inputValue(), 'trip & møre/1')
  await page.goBack()
  await page.getByRole('heading', { name: 'Sessions of this vault' }).waitFor()
  t.equal(await page.getByLabel('Session', { exact: true }).inputValue(), '')
  await page.goForward()
  await page.locator('article').getByText('The ferry leaves').waitFor()

  await visit(page, 'reflections')
  await page.locator('article').getByText('Lives in Lisbon.').waitFor()
  await page.getByLabel(/^\s*Show/).selectOption('3')
  await page.locator('article').getByText('Likes the sea.').waitFor()
  await page.getByLabel('Order').selectOption('importance')
  await page.waitForURL(/#\/reflections\?tier=3&sort=importance/)
  await page.reload()
  await page.locator('article').getByText('Likes the sea.').waitFor()
  t.equal(await page.getByLabel('Order').inputValue(), 'importance')
  await page.goBack()
  await page.goBack()
  await page.locator('article').getByText('Lives in Lisbon.').waitFor()
  t.equal(await page.getByLabel(/^\s*Show/).inputValue(), '2')
})

test('a team: filters are in the address, and an unknown address says so', async (t, { open }) => {
  const { org, adminKey } = await fillTeam(backend, base)
  const page = await open(adminKey, `orgs/${org}/memories`)
  const rows = page.locator('article')
  const keeps = async (field: Locator, value: string, address: RegExp): Promise<void> => {
    await page.waitForURL(address)
    await page.reload()
    await settled(page)
    t.equal(await field.inputValue(), value)
  }
  await page.getByLabel('Search').fill('budget')
  await page.getByLabel('Reviewed').selectOption('false')
  await keeps(page.getByLabel('Search'), 'budget', /memories\?q=budget&reviewed=false/)
  await rows.filter({ hasText: 'office' }).waitFor({ state: 'detached' })
  await visit(page, `orgs/${org}/review`)
  await page.getByLabel('Less sure than').selectOption('0.4')
  await keeps(page.getByLabel('Less sure than'), '0.4', /review\?threshold=0\.4/)
  t.match(await page.locator('main').innerText(), /1 of 1 memory/)
  await visit(page, `orgs/${org}/members`)
  await page.getByLabel('Find by member or key').fill('nobody')
  await keeps(page.getByLabel('Find by member or key'), 'nobody', /members\?q=nobody/)
  await visit(page, `orgs/${org}/audit`)
  await page.getByLabel('What').selectOption('retag')
  await keeps(page.getByLabel('What'), 'retag', /audit\?action=retag/)
  await page.getByText('No changes yet').waitFor()
  await visit(page, `orgs/${org}/passes`)
  await page.getByLabel('Show').selectOption('given_up')
  await keeps(page.getByLabel('Show'), 'given_up', /passes\?state=given_up/)
  for (const [address, says] of [
    [`orgs/${org}/nothing`, 'There is no such page'],
    ['nothing', 'There is no such page'],
    [`orgs/${crypto.randomUUID()}/members`, 'There is no such organization'],
  ] as const) {
    await page.evaluate(hash => (location.hash = hash), `#/${address}`)
    await page.getByRole('heading', { name: says }).waitFor()
    await settled(page)
    t.same(await barriersOf(page), [])
  }
  await page.getByRole('link', { name: 'Go to your organizations' }).click()
  await page.getByRole('heading', { name: 'Organizations' }).waitFor()
})

test('several are chosen, their ids copied, and deleted after a question', async (t, {
  page,
  open,
}) => {
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
  await open(key)
  await page.evaluate(() => (location.hash = '#/timeline?search=Note+1'))
  await page.locator('article').nth(30).waitFor()
  await settled(page)
  for (const nth of [0, 1, 2]) await page.locator('article').nth(nth).getByRole('checkbox').check()
  const bar = page.getByRole('region', { name: 'Selected memories' })
  t.match(await bar.innerText(), /3 memories selected/)
  t.same(await barriersOf(page), [])
  await picture(page, 'selected')
  const copied = () => page.evaluate(() => navigator.clipboard.readText())
  await press(bar, 'Copy ids')
  await page.getByText('Copied.').waitFor()
  const ids = (await copied()).split('\n')
  const listed = (await api.get('/v1/memory/list?search=Note+1&limit=3')).body.items
  t.same(
    ids,
    listed.map(({ memory_id }: { memory_id: string }) => memory_id),
  )
  await page.setViewportSize({ width: 360, height: 800 })
  t.equal(await overflowOf(page), 0)
  await picture(page, 'selected-narrow')
  await press(bar, 'Delete selected')
  await page.getByRole('dialog').getByText('3 raw memories will be removed').waitFor()
  await picture(page, 'selected-delete')
  await press(page.getByRole('dialog'), 'Delete')
  await page.getByText('3 memories are deleted.').waitFor()
  await bar.waitFor({ state: 'detached' })
  const left = (await api.get('/v1/memory/list?search=Note+1&limit=100')).body.items
  t.same(
    left.filter(({ memory_id }: { memory_id: string }) => ids.includes(memory_id)),
    [],
  )
  // On a phone the actions of a memory show when it is open.
  const first = page.locator('article').first()
  await first.locator('.line-text').click()
  await press(first, /^Copy id/)
  await page.waitForFunction(
    async before => (await navigator.clipboard.readText()) !== before,
    ids.join('\n'),
  )
  t.equal(await copied(), left[0].memory_id)
})
