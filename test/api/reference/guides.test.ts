import { readFileSync } from 'node:fs'
import t from 'tap'
import { guides } from '#api/reference/guides.ts'
import { startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'

const { base } = await startTestApi(t, await createTestBackend(t))
const get = async (path: string): Promise<string> => {
  const answer = await fetch(base + path)
  t.equal(answer.status, 200, path)
  return answer.text()
}
const pages = new Map<string, string>()
for (const { name } of guides) pages.set(`/guides/${name}`, await get(`/guides/${name}`))

t.test('200: every guide as a page and as the file that it is', async t => {
  for (const { name, file } of guides) {
    t.equal(await get(`/guides/${name}.md`), readFileSync(file, 'utf8'), name)
    const page = pages.get(`/guides/${name}`)!
    t.match(page, '<h1', name)
    t.notMatch(page, /not run:|<!--/, 'without what is for the tests')
  }
})

t.test('pictures are there', async t => {
  const [, picture = ''] = /<img src="([^"]*)"/.exec(pages.get('/guides/start')!)!
  t.match(await get(picture), 'PNG')
})

t.test('links between guides lead to pages and headings that are there', async t => {
  let followed = 0
  for (const [path, page] of pages) {
    for (const [, href] of page.matchAll(/<a href="([^"]*)"/g)) {
      if (/^https?:/.test(href!)) continue
      const [target, anchor] = href!.split('#') as [string, string | undefined]
      const to = pages.get(target || path) ?? (await get(target))
      if (anchor && pages.has(target || path))
        t.ok(to.includes(`id="${anchor}"`), `${path}: ${href}`)
      followed++
    }
  }
  t.ok(followed > 60, String(followed))
})

t.test('a search finds sections by their words, and shows what was typed as text', async t => {
  t.match(await get('/guides?q=PgBouncer%20transaction'), '/guides/deploy#')
  t.match(await get('/guides?q=xyzzy%20plugh'), 'No section has any of these words')
  const hostile = await get(`/guides?q=${encodeURIComponent('"><script>alert(1)</script>')}`)
  t.notMatch(hostile, '<script>')
  t.match(await get('/guides?q='), '<h1>Guides</h1>')
})

t.test('the questions of an integrator lead to the page that answers them', async t => {
  const questions: Record<string, string> = {
    'How do I start and make a first call?': 'start',
    'How do I name my own users?': 'users',
    'How do I turn memory off for one call?': 'switches',
    'What is a session, and is it recalled in another?': 'sessions',
    'How do I delete all of one person?': 'erase-a-person',
    'delete a user': 'erase-a-person',
    'How do I limit a user, and what do they see?': 'budgets',
    'Why was a memory not recalled?': 'why-not-recalled',
    'Does streaming work, and tools?': 'streaming-and-tools',
    'How do I check the signature of a webhook?': 'webhooks',
    'How do I keep private data out?': 'private-data',
    redaction: 'private-data',
    'What protects against memory poisoning?': 'poisoning',
    'Which embedding model, and how do I change it later?': 'embedding-servers',
    'How do I bring my data from mem0 or ChatGPT?': 'move-in',
    'What are the limits, and what comes beyond them?': 'limits',
    'How do I backup, restore, upgrade, rotate the master key?': 'backup-and-upgrade',
    'What does it cost me, and are prices right?': 'prices',
    cost: 'prices',
  }
  for (const [question, name] of Object.entries(questions)) {
    const found = await get(`/guides?q=${encodeURIComponent(question)}`)
    const [, first] = /<ol class="found">\s*<li>\s*<a href="\/guides\/([\w-]+)#/.exec(found) ?? []
    t.equal(first, name, question)
  }
})

t.test('an index for language models names what can be fetched', async t => {
  const index = await get('/llms.txt')
  const links = [...index.matchAll(/\]\((\/[^)]*)\)/g)].map(one => one[1]!)
  t.equal(links.length, guides.length + 1)
  for (const link of links) await get(link)
})

t.test('404: what is no guide', async t => {
  for (const path of ['/guides/nothing', '/guides/..%2Fpackage.json']) {
    t.equal((await fetch(base + path)).status, 404, path)
  }
})
