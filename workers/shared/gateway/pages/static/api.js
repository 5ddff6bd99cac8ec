"use strict";

(() => {
  const page = document.getElementById("api");

  // The usual layout has a `main` of its own, inside of that of the page, and no heading between the
  // title and the tags.
  const layout = ({ React }) => {
    const make = React.createElement;
    const Page = ({ getComponent, specSelectors }) => {
      const part = (name, isConnected = true) => make(getComponent(name, isConnected));
      if (specSelectors.loadingStatus() !== "success") return make("div", null, part("errors"));
      return make(
        "div",
        { className: "swagger-ui" },
        part("SvgAssets", false),
        part("InfoContainer"),
        make("div", { className: "row" }, part("AuthorizeBtnContainer")),
        make("h2", { className: "unseen" }, page.dataset.operations),
        part("operations"),
        part("Models"),
      );
    };
    return { components: { Page } };
  };

  SwaggerUIBundle({
    url: "/openapi.json",
    domNode: page,
    deepLinking: true,
    docExpansion: "none",
    tagsSorter: "alpha",
    validatorUrl: null,
    plugins: [layout],
    layout: "Page",
  });
})();
