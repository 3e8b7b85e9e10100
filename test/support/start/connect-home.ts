import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { compileCache } from '#test/support/start/compile-cache.ts'

const program = fileURLToPath(new URL('../../../scripts/clients/connect.ts', import.meta.url))

export type Ended = { code: number; out: string; error: string }

/** Runs `connect` in a home of its own, against a service and with a key. */
export const createConnect =
  (base: string, key: string) =>
  (folder: string, client: string, ...args: string[]): Promise<Ended> =>
    new Promise(resolve => {
      const options = ['--config-dir', folder, ...args]
      const child = execFile(
        process.execPath,
        [program, client, ...options],
        {
          env: {
            PATH: process.env.PATH,
            ...compileCache,
            HOME: folder,
            CODEX_HOME: '',
            BASE_URL: base,
            MEMORY_KEY: key,
          },
        },
        (_, out, error) => resolve({ code: child.exitCode ?? -1, out, error }),
      )
    })

/** A file of each client that a person has made, and what it has to say afterwards. */
export const filesBefore: Record<string, Record<string, string>> = {
  'claude-code': {
    'settings.json':
      '{\n  "env": { "ANTHROPIC_CUSTOM_HEADERS": "X-Team: a" },\n  "model": "opus"\n}\n',
    '.claude.json': '{"numStartups":3,"mcpServers":{"docs":{"command":"x"}}}',
  },
  codex: {
    'config.toml': '# mine\nmodel = "gpt-5"\nmodel_provider = "openai" # default\n\n[tui]\na = 1\n',
  },
  gemini: {
    '.env': '# mine\nGEMINI_API_KEY=abc\n',
    'settings.json': '{\n  "ui": { "theme": "x" } // mine\n}',
  },
  qwen: { 'settings.json': '{\n  "ui": { "theme": "x" } // mine\n}' },
  opencode: {
    'opencode.jsonc':
      '{\n  // mine\n  "$schema": "https://opencode.ai/config.json",\n  "provider": {\n    "openai": { "options": { "timeout": 1 } },\n  },\n}\n',
  },
  cursor: { 'mcp.json': '{\n\t"mcpServers": {\n\t\t"docs": { "command": "x" }\n\t}\n}\n' },
  vscode: { 'mcp.json': '{\r\n    // mine\r\n    "inputs": [],\r\n    "servers": {}\r\n}\r\n' },
  'open-webui': { '.env': 'WEBUI_NAME=Mine\nOPENAI_API_KEYS=sk-1;sk-2' },
  librechat: { '.env': 'WEBUI_NAME=Mine\n' },
}

export const filesOf = (folder: string): Record<string, string> =>
  Object.fromEntries(
    readdirSync(folder, { withFileTypes: true })
      .filter(entry => entry.isFile())
      .map(({ name }) => [name, readFileSync(join(folder, name), 'utf8')]),
  )

export const change = (folder: string, name: string, from: string | RegExp, to: string): void => {
  const file = join(folder, name)
  const text = readFileSync(file, 'utf8')
  if (text.replace(from, to) === text) throw new Error(`${name} has no ${from}`)
  writeFileSync(file, text.replace(from, to))
}
