import type { ProgramFile, Settings, Value } from './programs.ts'

/** The text of a file that has nothing but some settings, by its format. */
export const configText: Record<ProgramFile['format'], (settings: Settings) => string> = {
  json: settings => JSON.stringify(nest(settings), null, 2),
  toml: settings =>
    Object.entries(settings)
      .map(([path, value]) => tomlText(path.split('.'), value))
      .join('\n')
      .trimEnd(),
  env: settings =>
    Object.entries(settings as Record<string, string>)
      .map(([name, value]) => `${name}=${/\s/.test(value) ? `'${value}'` : value}`)
      .join('\n'),
}

/** Makes an object of each name but the last one of a path. */
function nest(settings: Settings): object {
  const root: Settings = {}
  for (const [path, value] of Object.entries(settings)) {
    const names = path.split('.')
    const last = names.pop()!
    const parent = names.reduce((object, name) => (object[name] ??= {}) as Settings, root)
    parent[last] = value
  }
  return root
}

/** The lines of a key at the top of a TOML file, for a path of one name; else those of a table. */
export const tomlText = (at: readonly string[], value: Value): string =>
  at.length > 1
    ? [`[${at.map(tomlName).join('.')}]\n`, ...Object.entries(value).map(tomlEntry)].join('')
    : tomlEntry([at[0]!, value])

const tomlName = (name: string): string => (/^[\w-]+$/.test(name) ? name : JSON.stringify(name))

const tomlEntry = ([name, value]: [string, Value]): string =>
  `${tomlName(name)} = ${tomlValue(value)}\n`

const tomlValue = (value: Value): string =>
  typeof value === 'object' && !Array.isArray(value)
    ? `{ ${Object.entries(value)
        .map(([name, inner]) => `${tomlName(name)} = ${tomlValue(inner)}`)
        .join(', ')} }`
    : JSON.stringify(value)
