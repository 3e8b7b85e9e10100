import type { Page } from 'playwright-core'
import t from 'tap'
import { barriersOf, look, picture, press, settled, visit } from '#test/console/browser.ts'
import { startConsole } from '#test/console/console.ts'
import { fillTeam } from '#test/console/stories.ts'
import { createTestClient } from '#test/support/start/api.ts'
import { waitUntil } from '#test/support/checks/wait-until.ts'

const { backend, base, story, test } = await startConsole(t)
const { org, path, adminKey, admin, waiting } = await fillTeam(backend, base)

type Shared = { mem_id: string; text: string; tags: string[]; reviewed: boolean }

const at = (name: string): string => `orgs/${org}/${name}`
const shared = async (query = ''): Promise<Shared[]> =>
  (await admin.get(`${path}/memories?limit=200${query}`)).body.items
const standing = async (id: string): Promise<Shared | undefined> =>
  (await shared()).find(({ mem_id }) => mem_id === id)
const queued = async (): Promise<number> => (await admin.get(`${path}/memories/review`)).body.count

/** Takes back what a message tells. */
const undo = (page: Page, done: string): Promise<void> =>
  press(page.locator('.toasts p', { hasText: done }), 'Undo')

for (const label of ['suppliers', 'jade']) await admin.post(`${path}/tags`, { label })

story('review: words are mended, saved or approved, and undone', async (t, { open }) => {
  const page = await open(adminKey, at('review'))
  const words = page.getByRole('textbox', { name: 'Words' })
  await page.keyboard.press('w')
  await words.waitFor()
  t.ok(await page.evaluate(() => document.activeElement?.matches('textarea')), 'ready to write')
  await words.fill('The supplier asks for a large deposit.')
  t.same(await barriersOf(page), [])
  await picture(page, 'review-words')
  await press(page, 'Save, and decide later')
  await page.getByText('Saved.').waitFor()
  t.equal(await page.getByText('1 of 3 memories').count(), 1, 'it waits on')
  const saved = { text: 'The supplier asks for a large deposit.', reviewed: false }
  t.match(await standing(waiting[0]!), saved)
  await page.keyboard.press('u')
  await page.getByText('It is as it was.').waitFor()
  t.match(await standing(waiting[0]!), { text: 'The supplier asks for a deposit.' })

  await page.keyboard.press('w')
  await words.fill('The supplier wants a deposit of a tenth.')
  await page.getByRole('group', { name: 'Tags' }).getByLabel('suppliers').check()
  await press(page, 'Approve with these')
  await page.getByText('1 of 2 memories').waitFor()
  const approved = { text: 'The supplier wants a deposit of a tenth.', reviewed: true }
  t.match(await standing(waiting[0]!), { ...approved, tags: ['finance', 'suppliers'] })
  await undo(page, 'Approved.')
  await page.getByText('1 of 3 memories').waitFor()
  const before = { text: 'The supplier asks for a deposit.', reviewed: false, tags: ['finance'] }
  t.match(await standing(waiting[0]!), before, 'words and tags are as they were')
  await page.getByText('How it came here').click()
  t.match(await page.locator('.passes').innerText(), /added\s+The supplier asks for a deposit/)
})

story('review: several at once, with one toast and one undo', async (t, { page }) => {
  const boxes = page.locator('.select-box')
  await boxes.first().click()
  await boxes.last().click({ modifiers: ['Shift'] })
  await page.getByText('3 memories selected').waitFor()
  t.same(await barriersOf(page), [])
  await picture(page, 'review-selected')
  await boxes.nth(1).click()
  await page.getByText('2 memories selected').waitFor()
  await press(page, 'Approve selected')
  await page.getByText('1 of 1 memory').waitFor()
  await page.getByText('Approved: 2 memories. What is replaced is removed.').waitFor()
  t.equal(await queued(), 1)
  await undo(page, 'Approved: 2')
  await page.getByText('of 3 memories').waitFor()
  t.equal(await queued(), 3)
  t.equal(
    (await shared('&q=budget')).some(({ text }) => /Q3 budget/.test(text)),
    true,
  )

  await press(page, 'Choose all shown')
  await press(page, 'Retag selected')
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('group', { name: 'Add' }).getByLabel('jade').check()
  await dialog.getByRole('group', { name: 'Take off' }).getByLabel('brand').check()
  await dialog.getByLabel('Approve them, too').uncheck()
  t.same(await barriersOf(page), [])
  await picture(page, 'review-retag')
  await press(dialog, 'Retag')
  await page.getByText('Saved: 3 memories.').waitFor()
  t.equal(await queued(), 3, 'they wait on')
  t.same((await standing(waiting[1]!))?.tags, ['jade'])
  await page.keyboard.press('u')
  const tagsOf = async () => (await standing(waiting[1]!))?.tags.join()
  await waitUntil('its tags are as they were', async () => (await tagsOf()) === 'brand')
  await settled(page)

  await admin.post(`${path}/memories/${waiting[1]}/review`, { action: 'approve' })
  await press(page, 'Choose all shown')
  await press(page, 'Reject selected')
  await page.getByText('1 of 3 were not changed').waitFor()
  const fault = await page.locator('.fault').innerText()
  t.match(fault, /“The new logo is blue\.”: This memory has been reviewed already/)
  await undo(page, 'Rejected')
  await waitUntil('both are back', async () => (await queued()) === 2)
  await admin.post(`${path}/memories/${waiting[1]}/review/undo`)
})

story('review: by author and tag, which the address keeps', async (t, { page }) => {
  await admin.post(`${path}/memories`, { text: 'Of another tag.', tags: ['jade'], confidence: 0.2 })
  await visit(page, 'orgs')
  await visit(page, at('review'))
  await page.getByRole('combobox', { name: 'Tag' }).selectOption('jade')
  await page.getByText('1 of 1 memory').waitFor()
  // A letter of a name is no shortcut.
  await page.getByLabel('Author').pressSequentially('dara', { delay: 150 })
  await page.getByText('Nothing matches').waitFor()
  t.equal(await page.getByLabel('Author').inputValue(), 'dara')
  t.match(page.url(), /author=dara&tag=jade/)
  t.equal(await queued(), 4, 'nothing is decided')
  await page.reload()
  await page.getByText('Nothing matches').waitFor()
  await page.getByLabel('Author').fill('')
  await page.getByText('1 of 1 memory').waitFor()
})

test('review: a reviewer decides about several, and changes no words', async (t, { open }) => {
  const { body } = await admin.post(`${path}/reviewers`, { email: 'rita@example.com' })
  const page = await open(body.reviewer_key, at('review'))
  await page.getByText('1 of 4 memories').waitFor()
  await page.keyboard.press('e')
  await page.getByRole('group', { name: 'Tags' }).waitFor()
  t.equal(await page.getByRole('textbox', { name: 'Words' }).count(), 0)
  await page.keyboard.press('Escape')
  await press(page, 'Choose all shown')
  await press(page, 'Reject selected')
  await page.getByText('The queue is empty').waitFor()
  await page.keyboard.press('u')
  await page.getByText('of 4 memories').waitFor()
  t.equal(await queued(), 4, 'what a reviewer rejects, a reviewer brings back')
})

story(
  'shared memories: several are retagged and deleted, and both are undone',
  async (t, { page }) => {
    const dialog = page.getByRole('dialog')
    await visit(page, at('memories'))
    const count = (await shared()).length
    await press(page, 'Choose all shown')
    await page.getByText(`${count} memories selected`).waitFor()
    await press(page, 'Retag selected')
    await dialog.getByRole('group', { name: 'Add' }).getByLabel('jade').check()
    await press(dialog, 'Retag')
    await page.getByText(`Retagged: ${count} memories.`).waitFor()
    const tagged = async () => (await shared('&tag=jade')).length
    t.equal(await tagged(), count)
    await undo(page, 'Retagged')
    await waitUntil('the tags are as they were', async () => (await tagged()) === 1)
    await settled(page)

    await page.locator('.select-box').first().click()
    await page.locator('.select-box').nth(1).click()
    t.same(await barriersOf(page), [])
    await picture(page, 'shared-selected')
    await press(page, 'Delete selected')
    await press(dialog, 'Delete')
    await page.getByText('Deleted: 2 memories.').waitFor()
    t.equal((await shared()).length, count - 2)
    await undo(page, 'Deleted')
    await waitUntil('they are back', async () => (await shared()).length === count)
  },
)

story(
  'shared memories: a file is looked at, shared, and adds nothing again',
  async (t, { page }) => {
    const dialog = page.getByRole('dialog')
    const before = (await shared()).length
    const lines = Array.from(
      { length: 501 },
      (_, n) => `${JSON.stringify({ text: `Room ${n}.` })}\n`,
    )
    const file = (words: string) => ({
      name: 'rooms.jsonl',
      mimeType: 'application/jsonl',
      buffer: Buffer.from(words),
    })
    const odd = '{"text":"Of no tag.","tags":["fnance","jade"]}\n{"text":""}\n'
    await visit(page, 'orgs')
    await visit(page, at('memories'))
    await press(page, 'Seed from a file')
    await dialog
      .getByLabel('File')
      .setInputFiles({ ...file(''), buffer: Buffer.from([0xff, 0xfe]) })
    await dialog.getByText('cannot be read as UTF-8').waitFor()
    await dialog.getByLabel('File').setInputFiles(file(odd + lines.join('')))
    await dialog.getByText('502 memories, 1 fault').waitFor()
    const words = await dialog.innerText()
    t.match(words, /Tags: fnance \(1\), jade \(1\)/)
    t.match(words, /No tags of the organization: fnance\./)
    t.match(words, /Line 2: its text is empty/)
    t.same(await barriersOf(page), [])
    await picture(page, 'seed-preview')
    await press(dialog, 'Share 502 memories')
    await dialog.getByText('502 stored, 0 refused.').waitFor()
    t.same(await barriersOf(page), [])
    await picture(page, 'seed-done')
    const count = async (): Promise<number> => {
      let [found, cursor] = [0, '']
      do {
        const { body } = await admin.get(`${path}/memories?limit=200${cursor}`)
        found += body.items.length
        cursor = body.next_cursor === null ? '' : `&cursor=${body.next_cursor}`
      } while (cursor !== '')
      return found
    }
    t.equal(await count(), before + 502)

    await dialog.getByLabel('File').setInputFiles(file(odd + lines.join('')))
    await press(dialog, 'Share 502 memories')
    await dialog.getByText('502 were sent in the last 24 hours').waitFor()
    t.equal(await count(), before + 502, 'nothing is added')
    await dialog.getByLabel('File').setInputFiles({
      name: 'one.csv',
      mimeType: 'text/csv',
      buffer: Buffer.from('text;tags\nRoom 0.;jade'),
    })
    await press(dialog, 'Share 1 memory')
    await dialog.getByText('1 stored, 0 refused.').waitFor()
    await press(dialog, 'Done')
    t.equal(await count(), before + 503)
  },
)

story(
  'members: a key to a private vault is shown once, and opens that vault alone',
  async (t, { page }) => {
    const dialog = page.getByRole('dialog')
    await visit(page, at('members'))
    const mint = async (): Promise<string> => {
      await page.getByLabel('More: ann@example.com').click()
      await press(page, 'Key to their private vault: ann@example.com')
      await dialog.getByLabel('Reason').fill('She has asked for what she said in May.')
      await press(dialog, 'Make the key')
      await page.locator('.secret').waitFor()
      return page.locator('.secret').innerText()
    }
    const first = await mint()
    t.same(await barriersOf(page), [])
    await picture(page, 'private-key')
    const search = (key: string) =>
      createTestClient(base, key).post('/v1/memory/search', { query: 'office', limit: 10 })
    const found = await search(first)
    t.equal(found.status, 200)
    t.notMatch(JSON.stringify(found.body), /opens at eight/, 'nothing of the team')
    await press(page, 'I have copied it')
    const second = await mint()
    await page.getByText('The one made before has stopped working.').waitFor()
    t.same([(await search(first)).status, (await search(second)).status], [401, 200])
    await press(page, 'I have copied it')
    await settled(page)
    await picture(page, 'members')
    await page.getByLabel('More: ann@example.com').click()
    await page.getByRole('button', { name: 'Remove: ann@example.com' }).waitFor()
    await look(t, page, 'members-menu')
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Remove: ann@example.com' }).waitFor({ state: 'hidden' })
    await visit(page, at('events'))
    await page.getByText('reason: She has asked for what she said in May.').first().waitFor()
    t.pass('the events say why')
  },
)
