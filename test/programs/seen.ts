import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { nodePrograms } from '#test/programs/node-programs.ts'
import { pythonPrograms } from '#test/programs/python-programs.ts'

/** The guide whose table says which versions were run, and when. */
const page = fileURLToPath(new URL('../../api/guides/programs.md', import.meta.url))

export const liteLlm = 'litellm[proxy]==1.106.12'
export const gradio = 'gradio==6.31.0'
export const libreChat = '@librechat/agents@3.9.2'
/** The newest that takes Python 3.11. */
export const difyPlugin = 'dify-plugin==0.7.4'
export const openWebui = 'open-webui==0.12.4'

/** Each program that is run, with one of its versions. */
const runs: { program: string; pin: string }[] = [
  ...pythonPrograms.flatMap(({ name, oldest, newest }) =>
    [oldest, newest].map(pins => ({ program: `${name} (Python)`, pin: pins[0]! })),
  ),
  ...nodePrograms.flatMap(({ name, versions }) =>
    versions.map(pins => ({ program: `${name} (TypeScript)`, pin: pins[0]! })),
  ),
  { program: 'LiteLLM', pin: liteLlm },
  { program: 'Open WebUI', pin: openWebui },
  { program: 'LibreChat, its packages', pin: libreChat },
  { program: 'Gradio', pin: gradio },
  { program: "Dify's package for plug-ins", pin: difyPlugin },
]

/** `pydantic-ai-slim[openai]==2.68.0` and `ai@7.0.173` as the page has them. */
const nameOf = (pin: string): string => pin.replace(/\[\w+\]/, '').replace(/==|(?<=.)@/, ' ')

/** The rows of the table, as they are to be but for their days. */
export const rowsOf = (dayOf: (pin: string) => string): string[] =>
  runs.map(({ program, pin }) => `| ${program} | \`${nameOf(pin)}\` | ${dayOf(pin)} |`)

const isRow = (line: string): boolean => /^\| .+ \| `.+` \| .+ \|$/.test(line)
export const readRows = (): string[] => readFileSync(page, 'utf8').split('\n').filter(isRow)

/** Notes that a version was run, on this day, where `SEEN=write` asks for it: a run of tests changes no file. */
export function noteSeen(pin: string): void {
  if (process.env.SEEN !== 'write') return
  const today = new Date().toISOString().slice(0, 10)
  const before = readRows()
  const dayBefore = (other: string) =>
    before
      .find(row => row.includes(`\`${nameOf(other)}\``))
      ?.split(' | ')[2]
      ?.replace(' |', '')
  const rows = rowsOf(other => (other === pin ? today : (dayBefore(other) ?? 'not yet')))
  const lines = readFileSync(page, 'utf8').split('\n')
  const at = lines.findIndex(line => line.startsWith('|---'))
  const after = lines.slice(at + 1).filter(line => !isRow(line))
  writeFileSync(page, [...lines.slice(0, at + 1), ...rows, ...after].join('\n'))
}
