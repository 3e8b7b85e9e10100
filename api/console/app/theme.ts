import { useState } from 'preact/hooks'
import { html, type View } from '#api/console/app/html.ts'

const themes = { auto: 'System', light: 'Light', dark: 'Dark' } as const
type Theme = keyof typeof themes

const storageKey = 'memory-vault.theme'

export const storedTheme = (): Theme => {
  const stored = localStorage.getItem(storageKey)
  return stored === 'light' || stored === 'dark' ? stored : 'auto'
}

/** Applies a theme and stores it in the browser; `auto` follows the system. */
export function applyTheme(name: Theme): void {
  localStorage.setItem(storageKey, name)
  const { dataset, style } = document.documentElement
  style.colorScheme = name === 'auto' ? '' : name
  dataset.theme = name
}

/** Switches between light, dark and the system's theme. */
export function ThemeSwitch(): View {
  const [current, setCurrent] = useState(storedTheme)
  const choose = (name: Theme): void => {
    applyTheme(name)
    setCurrent(name)
  }
  return html`<fieldset class="switch">
    <legend class="unseen">Theme</legend>
    ${(Object.keys(themes) as Theme[]).map(
      name =>
        html`<label key=${name} class="switch-choice">
          <input
            type="radio"
            name="theme"
            checked=${current === name}
            onChange=${() => choose(name)}
          />
          <span>${themes[name]}</span>
        </label>`,
    )}
  </fieldset>`
}
