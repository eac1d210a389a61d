import { choose, current, useT } from "../i18n";
import { useStore } from "../store";
import { THEMES, theme } from "../theme";
import { OneOf, Part } from "./parts";

export function Appearance() {
  const t = useT();
  return (
    <>
      <Part title={t("settings.theme")}>
        <OneOf
          label={t("settings.theme")}
          value={useStore(theme)}
          options={THEMES.map((value) => ({ value, label: t(`settings.theme.${value}`) }))}
          onChoose={theme.set}
        />
      </Part>
      <Part title={t("settings.language")}>
        <OneOf
          label={t("settings.language")}
          value={current()}
          options={[
            { value: "en", label: "English" },
            { value: "zh", label: "中文" },
          ]}
          onChoose={(language) => void choose(language)}
        />
      </Part>
    </>
  );
}
