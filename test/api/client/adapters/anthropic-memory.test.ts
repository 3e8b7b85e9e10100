import { betaMemoryTool } from '@anthropic-ai/sdk/helpers/beta/memory'
import t from 'tap'
import { vaultMemory } from '#api/client/adapters/anthropic-memory.ts'
import { vaultClient } from '#api/client/client.ts'
import { buildKey, startJobWorkers, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'

const backend = await createTestBackend(t)
await startJobWorkers(backend)
const { base } = await startTestApi(t, backend)

/** The tool as the SDK runs it. */
async function startTool() {
  const vault = vaultClient(base, await buildKey(backend))
  const tool = betaMemoryTool(vaultMemory(vault))
  // The SDK makes a result with `is_error` and these words of what a tool throws.
  const run = async (command: string, fields: object) => {
    try {
      return await tool.run({ command, ...fields } as Parameters<typeof tool.run>[0])
    } catch (error) {
      t.equal((error as Error).constructor.name, 'CommandFault')
      return `Error: ${(error as Error).message}`
    }
  }
  const view = (path: string, range?: number[]) =>
    run('view', { path, ...(range && { view_range: range }) })
  const create = (path: string, text: string) => run('create', { path, file_text: text })
  return { vault, run, view, create }
}

t.test('a file: created, viewed, edited, and found by what it says', async t => {
  const { vault, run, view, create } = await startTool()
  const path = '/memories/notes.md'
  t.equal(await create(path, 'Ada sails.\nBen rows.\n'), `File created successfully at: ${path}`)
  t.equal(await create(path, 'x'), `Error: File ${path} already exists`)
  const head = `Here's the content of ${path} with line numbers:\n`
  t.equal(await view(path), `${head}     1\tAda sails.\n     2\tBen rows.\n     3\t`)
  t.equal(await view(path, [2, 2]), `${head}     2\tBen rows.`)
  t.equal(await view(path, [2, -1]), `${head}     2\tBen rows.\n     3\t`)
  const replace = (old: string, text: string) =>
    run('str_replace', { path, old_str: old, new_str: text })
  t.equal(
    await replace('rows', 'rows $& fast'),
    'The memory file has been edited. Here is the snippet showing the change (with line numbers):\n' +
      '     1\tAda sails.\n     2\tBen rows $& fast.\n     3\t',
  )
  t.equal(
    await replace('swims', 'x'),
    `Error: No replacement was performed, old_str \`swims\` did not appear verbatim in ${path}.`,
  )
  t.equal(
    await replace('s.\n', 'x'),
    'The memory file has been edited. Here is the snippet showing the change (with line numbers):\n' +
      '     1\tAda sailxBen rows $& fast.\n     2\t',
    'across lines',
  )
  t.equal(
    await replace('a', 'x'),
    `Error: No replacement was performed. Multiple occurrences of old_str \`a\` in lines: 1. Please ensure it is unique`,
  )
  const insert = (line: number, text: string) =>
    run('insert', { path, insert_line: line, insert_text: text })
  t.equal(await insert(0, 'The boat lies in Lisbon.\n'), `The file ${path} has been edited.`)
  t.equal(
    await insert(9, 'x'),
    'Error: Invalid `insert_line` parameter: 9. It should be within the range of lines of the file: [0, 3]',
  )
  const body = { query: 'where is the boat?', limit: 1 }
  const { memories } = await vault.call('POST /v1/memory/search', { body })
  t.match(memories[0], { content: /Lisbon/, metadata: { file_path: path } })
  t.equal((await vault.call('GET /v1/memory/stats')).memories, 1, 'what was replaced is gone')
})

t.test('edits that come together are all made', async t => {
  const { run, view, create } = await startTool()
  const path = '/memories/notes.md'
  await create(path, '1\n2\n3')
  const edit = (digit: string) =>
    run('str_replace', { path, old_str: digit, new_str: digit.repeat(2) })
  await Promise.all(['1', '2', '3'].map(edit))
  t.match(await view(path), / 1\t11\n {5}2\t22\n {5}3\t33$/)
})

t.test('directories: two levels with sizes, moved and deleted whole', async t => {
  const { run, view, create } = await startTool()
  const head = (path: string) =>
    `Here're the files and directories up to 2 levels deep in ${path}, excluding hidden items and node_modules:\n`
  t.equal(await view('/memories'), `${head('/memories')}0B\t/memories`)
  await create('/memories/a/b/c.md', 'x'.repeat(1536))
  await create('/memories/a/.hidden', 'x'.repeat(512))
  await create('/memories/long.md', ' é\n'.repeat(2000))
  t.equal(
    await view('/memories/'),
    `${head('/memories')}9.8K\t/memories\n1.5K\t/memories/a/\n1.5K\t/memories/a/b/\n7.8K\t/memories/long.md`,
  )
  t.match(await view('/memories/long.md', [1999, 2000]), /^.*:\n {2}1999\t é\n {2}2000\t é$/)
  const rename = (from: string, to: string) => run('rename', { old_path: from, new_path: to })
  t.equal(
    await rename('/memories/a', '/memories/long.md'),
    'Error: The destination /memories/long.md already exists',
  )
  t.match(await rename('/memories/a', '/memories/a/z'), /^Error: The destination/)
  t.equal(await rename('/memories/q', '/memories/z'), 'Error: The path /memories/q does not exist')
  t.equal(
    await rename('/memories/a', '/memories/z/y'),
    'Successfully renamed /memories/a to /memories/z/y',
  )
  t.match(await view('/memories/z/y/b/c.md'), 'x'.repeat(1536))
  t.equal(await run('delete', { path: '/memories/z' }), 'Successfully deleted /memories/z')
  t.equal(
    await run('delete', { path: '/memories/z' }),
    'Error: The path /memories/z does not exist',
  )
  t.equal(await view('/memories'), `${head('/memories')}7.8K\t/memories\n7.8K\t/memories/long.md`)
})

t.test('what no file can be, and paths that lead elsewhere', async t => {
  const { run, view, create } = await startTool()
  await create('/memories/a.md', 'kept')
  const missing = 'does not exist. Please provide a valid path.'
  t.equal(await view('/memories/b'), `Error: The path /memories/b ${missing}`)
  const edit = { path: '/memories/b', old_str: 'a', insert_line: 0, insert_text: 'a' }
  t.equal(await run('str_replace', edit), `Error: The path /memories/b ${missing}`)
  t.equal(
    await run('insert', { ...edit, path: '/memories' }),
    `Error: The path /memories ${missing}`,
  )
  t.match(await create('/memories/a.md/b', 'x'), /^Error: The path \/memories\/a.md is not/)
  t.match(await create('/memories', 'x'), /already exists/)
  for (const path of [
    '/memories/../etc/passwd',
    '/memories/..\\x',
    '/memories/%2e%2e/x',
    '/memories/%252e%252e%252fx',
    '/etc/passwd',
    'memories/x',
    '/memoriesx',
    `/memories/${'x'.repeat(250)}`,
    '/memories/a\nb',
    undefined,
  ]) {
    for (const command of ['view', 'create', 'delete', 'str_replace', 'insert']) {
      t.match(await run(command, { ...edit, file_text: 'x', path }), /^Error: /, `${path}`)
    }
    t.match(await run('rename', { old_path: '/memories/a.md', new_path: path }), /^Error: /)
  }
  t.match(await run('delete', { path: '/memories/' }), /^Error: Cannot delete/)
  t.match(await view('/memories'), /4B\t\/memories\/a.md$/)
})
