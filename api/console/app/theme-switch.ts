import { useState } from 'preact/hooks'
import { html, type View } from '#api/console/app/html.ts'
import { theme, themes, wear } from '#api/console/app/theme.ts'

const names = { auto: 'System', light: 'Light', dark: 'Dark' }

/** Light, dark, or as the system has it. */
export function ThemeSwitch(): View {
  const [worn, setWorn] = useState(theme)
  return html`<fieldset class="switch">
    <legend class="unseen">Theme</legend>
    ${themes.map(
      name =>
        html`<label key=${name} class="switch-choice">
          <input
            type="radio"
            name="theme"
            checked=${worn === name}
            onChange=${() => {
              wear(name)
              setWorn(name)
            }}
          />
          <span>${names[name]}</span>
        </label>`,
    )}
  </fieldset>`
}
