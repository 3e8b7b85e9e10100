import { execFile } from 'node:child_process'
import { cpSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { programs as allPrograms } from '#api/client/programs/programs.ts'
import { snippetsOf } from '#api/client/programs/snippets.ts'
import { buildKey, startJobWorkers } from '#test/support/start/api.ts'
import { installPackage } from '#test/support/start/installed-package.ts'
import { providerKey } from '#test/support/doubles/model-provider.ts'
import { startProxyFixture } from '#test/support/doubles/model-provider/proxy-fixture.ts'
import { findPythons, noPython } from '#test/support/start/python.ts'

// Each program is a process of its own.

const run = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))
const { backend, base, provider } = await startProxyFixture(t)
await startJobWorkers(backend)
const folder = t.testdir({
  node_modules: {},
  'package.json': '{"type":"module"}',
  'tsconfig.json': JSON.stringify({
    extends: `${root}tsconfig.json`,
    compilerOptions: { lib: ['esnext', 'dom'], exactOptionalPropertyTypes: false },
    include: ['*.ts'],
  }),
})
for (const name of readdirSync(`${root}node_modules`)) {
  symlinkSync(`${root}node_modules/${name}`, `${folder}/node_modules/${name}`)
}
await installPackage('api/client', `${folder}/node_modules`)
const [python] = await findPythons()
cpSync(`${root}api/client/python`, `${folder}/python`, { recursive: true })

const env = {
  PATH: process.env.PATH!,
  OPENAI_API_KEY: providerKey('openai'),
  OPENAI_BASE_URL: provider.env.OPENAI_BASE_URL!,
}
/** Their package is imported by the file of the adapter; with it `test/programs` runs them. */
const frameworksInPython = /from memory_vault\.adapters/
const inPython = 'import setup; exec(open(__import__("sys").argv[1]).read())'

const programs = await Promise.all(
  Object.entries(allPrograms).flatMap(([name, program]) =>
    (program.kind === 'Frameworks' ? ['TypeScript', 'Python'] : []).map(async language => {
      const key = await buildKey(backend)
      const place = { url: base, key, rights: 'memory' } as const
      const found = snippetsOf(program, place).find(one => one.file === language)
      const file = `${folder}/${name}.${language === 'Python' ? 'py' : 'ts'}`
      if (found) writeFileSync(file, found.text)
      return { name, language, file, text: found?.text }
    }),
  ),
)

for (const { name, language, file, text } of programs) {
  if (text === undefined) continue
  if (language === 'Python' && frameworksInPython.test(text)) continue
  const skip = language === 'Python' && !python && noPython
  t.test(`${name} in ${language} runs as it is printed`, { skip }, async t => {
    const { stdout } =
      language === 'Python'
        ? await run(python!.command, ['-B', '-c', inPython, file], { cwd: `${folder}/python`, env })
        : await run(process.execPath, [file], { cwd: folder, env })
    t.not(stdout.trim(), '', 'it shows something')
    if (name === 'langgraph') t.match(stdout, 'A red canoe.')
    if (name === 'ai-sdk-middleware') t.match(stdout, 'Noted')
  })
}

t.test('those in TypeScript have no faults of types', async t => {
  const tsc = `${root}node_modules/typescript/bin/tsc`
  const { stdout } = await run('env', [
    '-u',
    'NODE_OPTIONS',
    process.execPath,
    tsc,
    '-p',
    folder,
  ]).catch((error: { stdout: string }) => error)
  t.equal(stdout, '')
})
