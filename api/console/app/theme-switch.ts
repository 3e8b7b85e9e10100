import { useState } from 'preact/hooks'
import { html, type View } from '#api/console/app/html.ts'
import { storedTheme, themes, applyTheme } from '#api/console/app/theme.ts'

const themeLabels = { auto: 'System', light: 'Light', dark: 'Dark' }

/** Switches between light, dark and the system's theme. */
export function ThemeSwitch(): View {
  const [current, setCurrent] = useState(storedTheme)
  return html`<fieldset class="switch">
    <legend class="unseen">Theme</legend>
    ${themes.map(
      name =>
        html`<label key=${name} class="switch-choice">
          <input
            type="radio"
            name="theme"
            checked=${current === name}
            onChange=${() => {
              applyTheme(name)
              setCurrent(name)
            }}
          />
          <span>${themeLabels[name]}</span>
        </label>`,
    )}
  </fieldset>`
}
