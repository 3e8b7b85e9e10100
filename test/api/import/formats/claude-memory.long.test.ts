import { mkdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { BetaLocalFilesystemMemoryTool } from '@anthropic-ai/sdk/tools/memory/node'
import t from 'tap'
import { vaultMemory } from '#api/client/adapters/anthropic-memory.ts'
import { vaultClient } from '#api/client/client.ts'
import { formats } from '#api/import/formats.ts'
import { listFilesAt } from '#scripts/clients/import/export-files.ts'
import { buildKey, startJobWorkers, startTestApi } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { readFromFiles } from '#test/support/samples/import-lines.ts'

const at = new Date('2026-09-01T10:00:00Z')

/** A folder as the SDK's own tool writes it, with a file that is no text. */
async function writeFolder(folder: string) {
  const tool = await BetaLocalFilesystemMemoryTool.init(folder)
  const long = 'The ferry to Sylt leaves at nine. '.repeat(40)
  const files = {
    '/memories/notes.md': 'I live in Husum.\n\n\n  Indented.\n',
    '/memories/trips/sylt.txt': long,
    '/memories/same': 'Twice.',
    '/memories/same2': 'Twice.',
  }
  for (const [path, file_text] of Object.entries(files)) {
    await tool.create({ command: 'create', path, file_text })
    utimesSync(join(folder, path), at, at)
  }
  mkdirSync(join(folder, 'memories/.git'))
  writeFileSync(join(folder, 'memories/.git/HEAD'), 'ref')
  writeFileSync(join(folder, 'memories/odd.md'), 'a\0b')
  return files
}

t.test("a folder of the SDK's tool moves in, and the tool goes on with its files", async t => {
  const folder = t.testdir()
  const files = await writeFolder(folder)
  const given = (await listFilesAt(folder)).filter(({ name }) =>
    formats['claude-memory']!.isExportFile(name),
  )
  const read = () =>
    readFromFiles(
      'claude-memory',
      given.map(({ name, modified }) => ({
        name,
        text: readFileSync(join(folder, name)),
        modified: modified!,
      })),
    )
  const { lines, strangers } = await read()
  t.same(strangers, ['memories/odd.md'])
  t.same((await read()).lines, lines, 'a second reading is the same')
  t.match(
    lines.find(({ content }) => content.startsWith('I live')),
    {
      role: 'user',
      timestamp: at.toISOString(),
      metadata: { speaker: 'Claude', file_path: '/memories/notes.md', origin: 'import' },
    },
  )

  const backend = await createTestBackend(t)
  await startJobWorkers(backend)
  const { base } = await startTestApi(t, backend)
  const vault = vaultClient(base, await buildKey(backend))
  const body = lines.map(line => `${JSON.stringify(line)}\n`).join('')
  await vault.call('POST /v1/memory/upload', { body })
  const tool = vaultMemory(vault)
  for (const [path, text] of Object.entries(files)) {
    const shown = await tool.view({ path })
    const said = shown
      .split('\n')
      .slice(1)
      .map(line => line.replace(/^\s*\d+\t/, ''))
    t.equal(said.join('\n').trimEnd(), text.trimEnd(), path)
  }
  await tool.str_replace({ path: '/memories/notes.md', old_str: 'Husum', new_str: 'Kiel' })
  t.match(await tool.view({ path: '/memories/notes.md' }), /I live in Kiel/)
  t.notMatch(await tool.view({ path: '/memories/notes.md' }), /Husum/)
})
