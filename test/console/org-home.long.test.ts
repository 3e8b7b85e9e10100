import t from 'tap'
import { barriersOf, look, picture, press, settled, visit } from '#test/console/browser.ts'
import { consoleTests } from '#test/console/console.ts'
import { buildAdmin } from '#test/support/start/admin.ts'
import { createTestClient } from '#test/support/start/api.ts'
import { seedTeamMemories } from '#test/support/start/team.ts'
import { passMidnight } from '#test/support/checks/wait-until.ts'
import { startTeamService } from '#test/support/start/working-team.ts'

const { backend, base, newTeam } = await startTeamService(t)
const { test } = consoleTests(t, base)
const dayMs = 24 * 3600 * 1000

test('home: a new team says what to do first, and ticks it', async (t, { open }) => {
  const { key } = await buildAdmin(backend)
  const admin = createTestClient(base, key)
  const { body } = await admin.post('/v1/orgs', { name: 'Acme' })
  const path = `/v1/orgs/${body.org_id}`
  const page = await open(key)
  await page.getByRole('link', { name: /Acme/ }).click()
  await page.getByText('The team knows nothing yet').waitFor()
  t.ok(page.url().endsWith(`/orgs/${body.org_id}/home`), 'the card leads to it')
  const ticked = () => page.locator('.steps > .done > b').allInnerTexts()
  t.same(await ticked(), [])
  await look(t, page, 'org-home-new')
  await admin.send('PUT', '/v1/account/provider-keys/openai', { body: { key: 'sk-0123456789ab' } })
  await admin.post(`${path}/tags`, { label: 'finance' })
  await admin.post(`${path}/keys`, { team_member_id: 'ann@example.com' })
  await page.locator('.steps > .done', { hasText: 'A key for each' }).waitFor()
  t.same(await ticked(), ['Models that answer', 'Tags', 'Members', 'A key for each'])
  await press(page, 'Seed a memory')
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Text').fill('The office opens at eight.')
  await press(dialog, 'Share')
  await page.getByRole('heading', { name: 'Knowledge over time' }).waitFor()
  await page.getByText('The office opens at eight.').waitFor()
})

test('home: what a team knows, what waits, who it is from and what it cost', async (t, {
  open,
}) => {
  await passMidnight()
  const acme = await newTeam(['finance', 'launch', 'hiring', 'office'])
  const at = (days: number) => ({ acquiredAt: Date.now() - days * dayMs })
  const labels = ['finance', 'launch', 'hiring', 'office', 'brand']
  await seedTeamMemories(
    backend,
    acme,
    Array.from({ length: 60 }, (_, n) => ({
      text: `Decision number ${n} about ${labels[n % 5]}.`,
      tags: n % 9 === 0 ? [] : [labels[n % 5]!, ...(n % 7 === 0 ? ['finance'] : [])],
      ...at(100 - n * 1.5),
    })),
  )
  await seedTeamMemories(backend, acme, [
    { text: 'The logo is blue.', tags: ['brand'], confidence: 0.3, reviewed: false, ...at(3) },
  ])
  await acme.share('Fact: launch: in May #launch')
  const bob = await acme.addMember('bob@example.com', ['Everything'])
  await acme.share('Fact: floor: three #office', { as: bob })
  await acme.share('Fact: parking: none #office', { as: bob })

  const page = await open(acme.adminKey, `orgs/${acme.org}/home`)
  await page.locator('.chart canvas').waitFor()
  await settled(page)
  const figures = await page.locator('main .figures').first().innerText()
  t.match(
    figures,
    /Shared memories\s+64\s+\d+ in this time\s+Waits for review\s+1\s+the oldest 3 days ago/,
  )
  t.match(await page.locator('.chart').getAttribute('aria-label'), /64 memories, \d+ of them since/)
  const legend = await page.locator('.u-legend').innerText()
  for (const name of ['All memories', 'finance', 'Other tags alone', 'No tags'])
    t.match(legend, name)
  await page.getByText('The same in numbers').click()
  const rows = await page.locator('.table tr').allInnerTexts()
  const [head, last] = rows.map(row => row.split('\t').map(cell => cell.trim()))
  t.equal(last![head!.indexOf('All memories')], '64')
  const from = await page.locator('section', { hasText: 'Who it is from' }).last().innerText()
  t.match(from, /bob@example\.com\s+2 facts, last just now\s+\S*\s*ada@example\.com\s+1 fact/)
  t.match(
    await page.getByText('Newest').locator('xpath=ancestor::section[1]').innerText(),
    /parking/,
  )
  await look(t, page, 'org-home')
  await page.getByLabel('Time').selectOption('30')
  await page.waitForFunction(() => location.hash.endsWith('?days=30'))
  await settled(page)
  t.match(await page.locator('main .figures').first().innerText(), /64\s+17 in this time/)
  await page.locator('main .figures').getByRole('link', { name: '1' }).click()
  await page.getByText('The logo is blue.').waitFor()
})

test('admins: a further credential is issued, works, and is revoked', async (t, { open }) => {
  const { key, email } = await buildAdmin(backend)
  const page = await open(key, 'admins')
  const row = page.locator('.row')
  t.match(await row.innerText(), new RegExp(`${email}\\s+active\\s+this tab`))
  await press(page, 'New admin credential')
  const dialog = page.getByRole('dialog')
  t.equal(await dialog.getByLabel('Email').count(), 0, 'it is their own')
  await dialog.getByLabel('Works for').selectOption('90')
  t.same(await barriersOf(page), [])
  await picture(page, 'admin-issue')
  await press(dialog, 'Issue')
  const issued = await page.locator('.secret').innerText()
  t.match(issued, /^mk_admin_/)
  t.equal((await createTestClient(base, issued).get('/v1/orgs')).status, 200)
  await press(page, 'I have copied it')
  await page.locator('.row').nth(1).waitFor()
  await look(t, page, 'admins')
  await press(page, new RegExp(`^Revoke: .*${issued.slice(-4)}$`))
  await press(dialog, 'Revoke')
  await page.getByText('revoked', { exact: true }).waitFor()
  t.equal((await createTestClient(base, issued).get('/v1/orgs')).status, 401)
  await press(page, /^Revoke/)
  await dialog.getByText('this tab is signed out').waitFor()
  await press(dialog, 'Revoke')
  await page.getByText('The credential is no longer valid.').waitFor()
})

test('a member: what the team shares is read page by page, as far as roles allow', async (t, {
  open,
}) => {
  const acme = await newTeam()
  await acme.defineRole('Money', ['finance'])
  const bob = await acme.addMember('bob@example.com', ['Money'])
  const at = (hours: number) => ({ acquiredAt: Date.now() - hours * 3_600_000 })
  await seedTeamMemories(backend, acme, [
    ...Array.from({ length: 60 }, (_, n) => ({
      text: `Note ${n}: ${'the harbour was quiet and the ferry left as planned '.repeat(6)}`,
      ...at(n + 2),
    })),
    { text: 'The budget was cut by a tenth.', tags: ['finance'], ...at(1) },
    { text: 'A raise of five per cent for Rosa.', tags: ['salaries'], ...at(1) },
  ])
  const page = await open(bob, 'team')
  await page.getByText('The budget was cut by a tenth.').waitFor()
  await look(t, page, 'member-team')
  const rows = page.locator('.latest-row')
  const shown = await rows.count()
  t.ok(shown > 5 && shown < 61, `${shown} of 61`)
  while (await page.getByRole('button', { name: 'Show more' }).count()) {
    await press(page, 'Show more')
    await settled(page)
  }
  t.equal(await rows.count(), 61)
  t.notMatch((await rows.allInnerTexts()).join(), /Rosa/)
  await page.getByLabel('Question').fill('What became of the budget?')
  await page.waitForFunction(() => location.hash.includes('budget'))
  await settled(page)
  t.match(await rows.first().innerText(), /cut by a tenth/)
  await visit(page, 'overview')
  t.match(await page.locator('main header').first().innerText(), /your own vault/)
  await visit(page, 'timeline')
  t.match(await page.locator('main header').first().innerText(), /The core vault: 0 raw memories/)
})
